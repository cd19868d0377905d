# expect: mistake missing_zero_grad
import torch
from tqdm import tqdm


def fit(encoder, decoder, train_dl, criterion, args):
    enc_optimizer = torch.optim.SGD(encoder.parameters(), lr=args.encoder_lr)
    dec_optimizer = torch.optim.SGD(decoder.parameters(), lr=args.decoder_lr)
    for epoch in range(args.epochs):
        enc_optimizer.zero_grad()
        for i, (imgs, caps, lens) in enumerate(tqdm(train_dl)):
            feats = encoder(imgs.to(args.device))
            scores = decoder(feats, caps.to(args.device), lens)
            loss = criterion(scores, caps[:, 1:].to(args.device))
            loss = loss / args.accum_steps
            loss.backward()
            if (i + 1) % args.accum_steps == 0 or (i + 1) == len(train_dl):
                enc_optimizer.step()
                dec_optimizer.step()
                enc_optimizer.zero_grad()
