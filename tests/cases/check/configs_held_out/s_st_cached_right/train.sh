python train_st.py --model bert-base-uncased --loss CachedMultipleNegativesRankingLoss --per_device_train_batch_size 256 --mini_batch_size 16 --learning_rate 2e-5 --num_train_epochs 1
