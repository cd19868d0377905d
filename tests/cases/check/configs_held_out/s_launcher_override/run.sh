ACCELERATE_LOG_LEVEL=info accelerate launch --config_file accelerate_config.yaml scripts/run_sft.py config_full.yaml
