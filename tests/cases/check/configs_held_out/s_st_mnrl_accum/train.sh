python train_st.py --model bert-base-uncased --loss MultipleNegativesRankingLoss --per_device_train_batch_size 1 --gradient_accumulation_steps 64 --learning_rate 2e-5 --num_train_epochs 1
