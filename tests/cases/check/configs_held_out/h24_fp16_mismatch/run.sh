CUDA_VISIBLE_DEVICES=1 deepspeed --num_gpus 1 supervised_finetuning.py --model_type chatglm --per_device_train_batch_size 4 --deepspeed deepspeed_config.json --learning_rate 2e-5 --bf16
