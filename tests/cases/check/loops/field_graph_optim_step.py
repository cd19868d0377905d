# expect: mistake no_division
import torch


class Trainer:
    def __init__(self, args, splitter, gcn, classifier, comp_loss, dataset):
        self.args = args
        self.splitter = splitter
        self.gcn = gcn
        self.classifier = classifier
        self.comp_loss = comp_loss
        self.tr_step = 0
        self.init_optimizers(args)

    def init_optimizers(self, args):
        self.gcn_opt = torch.optim.Adam(self.gcn.parameters(), lr=args.learning_rate)
        self.classifier_opt = torch.optim.Adam(self.classifier.parameters(), lr=args.learning_rate)
        self.gcn_opt.zero_grad()
        self.classifier_opt.zero_grad()

    def train(self):
        for e in range(self.args.num_epochs):
            self.run_epoch(self.splitter.train, e, grad=True)

    def run_epoch(self, split, epoch, grad):
        torch.set_grad_enabled(grad)
        for s in split:
            s = self.prepare_sample(s)
            predictions, nodes_embs = self.predict(s.hist_adj_list, s.hist_ndFeats_list, s.label_sp["idx"], s.node_mask_list)
            loss = self.comp_loss(predictions, s.label_sp["vals"])
            if grad:
                self.optim_step(loss)
        torch.set_grad_enabled(True)

    def predict(self, hist_adj_list, hist_ndFeats_list, node_indices, mask_list):
        nodes_embs = self.gcn(hist_adj_list, hist_ndFeats_list, mask_list)
        return self.classifier(nodes_embs[node_indices]), nodes_embs

    def optim_step(self, loss):
        self.tr_step += 1
        loss.backward()
        if self.tr_step % self.args.steps_accum_gradients == 0:
            self.gcn_opt.step()
            self.classifier_opt.step()
            self.gcn_opt.zero_grad()
            self.classifier_opt.zero_grad()

    def prepare_sample(self, sample):
        return Namespace(sample)
