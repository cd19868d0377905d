python3 -m verl.trainer.main_ppo data.train_batch_size=1024 actor_rollout_ref.actor.ppo_mini_batch_size=256 \
  actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=16 trainer.n_gpus_per_node=8 trainer.nnodes=1 \
  actor_rollout_ref.actor.optim.lr=1e-6 trainer.total_epochs=15
