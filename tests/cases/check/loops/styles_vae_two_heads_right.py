# expect: ok
import torch


def step(encoder, decoder, batches, opt_enc, opt_dec, beta):
    opt_enc.zero_grad()
    opt_dec.zero_grad()
    share = 1.0 / len(batches)
    for x in batches:
        mu, logvar = encoder(x)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        rec = torch.nn.functional.mse_loss(decoder(z), x)
        kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).mean()
        (share * (rec + beta * kl)).backward()
    opt_enc.step()
    opt_dec.step()


def train(encoder, decoder, groups, opt_enc, opt_dec, beta=0.1):
    for batches in groups:
        step(encoder, decoder, batches, opt_enc, opt_dec, beta)
