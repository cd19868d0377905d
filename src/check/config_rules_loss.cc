#include <fmt/format.h>

#include <algorithm>

#include "check/config_rules.h"
#include "check/roles.h"

namespace batchwright::check {
namespace {

using Q = Quantity;

// Losses whose negatives are the other examples of the micro-batch. Cached variants (GradCache) are exact for
// any micro-batch; pairwise losses (sentence-transformers' ContrastiveLoss, triplet) take their negatives
// from the data.
bool in_batch_negatives(const std::string& loss) {
  if (contains_any(loss, {"cached", "gradcache", "grad_cache"})) return false;
  return contains_any(loss, {"multiplenegativesranking", "multiple_negatives", "mnrl", "infonce", "info_nce",
                             "ntxent", "nt_xent", "simclr", "simcse", "cliploss", "clip_loss", "supcon",
                             "in_batch", "inbatch", "contrastive_loss_clip", "siglip"}) ||
         loss == "contrastive" || loss == "clip" || loss == "nce" || loss == "mnr";
}

// Backbones that normalise over the batch as published.
bool batch_normalised(const std::string& model) {
  return contains_any(model, {"resnet", "resnext", "efficientnet", "mobilenet", "densenet", "yolo",
                              "vgg16_bn", "inception", "regnet", "unet", "deeplab"});
}

}  // namespace

void check_equivalence(const Run& run, const std::vector<std::string>& files, FindingList& found) {
  const Known m = run.micro_batch(), a = run.accumulation();
  if (!m || !a || *a < 2 || run.arguments.find(Q::Accumulation) == nullptr) return;
  const Setting* loss = run.arguments.find(Q::LossName);
  const Setting* model = run.arguments.find(Q::ModelName);
  const std::string loss_name = loss == nullptr ? "" : normal_key(loss->written);
  const std::string model_name = model == nullptr ? "" : normal_key(model->written);
  const bool cached = run.arguments.has("grad_cache");
  const bool contrastive =
      !cached && (in_batch_negatives(loss_name) || run.arguments.has("in_batch_negatives"));
  if (contrastive) {
    const Setting& at = run.arguments.find(Q::MicroBatch) != nullptr ? *run.arguments.find(Q::MicroBatch)
                                                                     : *run.arguments.find(Q::Accumulation);
    Finding& f = found.add("accum_not_equivalent", at);
    // With a handful of negatives the loss has lost its task; with many it is merely weaker than the number
    // suggests.
    if (*m > 8) f.severity = Severity::Note;
    f.what =
        fmt::format("{} takes its negatives from the micro-batch of {:g}; {:g} accumulation steps add none",
                    loss == nullptr ? "a loss with in-batch negatives" : loss->written, *m, *a);
    f.consequence = *m == 1 ? "each example has no negative at all: the loss is constant"
                            : fmt::format("{:g} negatives an example instead of {:g}", *m - 1, *m * *a - 1);
    f.fix = "a larger micro-batch, or the cached (GradCache) form of the loss";
    return;
  }
  const bool statistics = run.arguments.has("batch_norm") || batch_normalised(model_name);
  if (!statistics || run.arguments.has("sync_batchnorm") || *m > 2 ||
      contains_any(model_name, {"_gn", "group", "frozen"}))
    return;
  const Setting& at = run.arguments.find(Q::MicroBatch) != nullptr ? *run.arguments.find(Q::MicroBatch)
                                                                   : *run.arguments.find(Q::Accumulation);
  Finding& f = found.add("accum_not_equivalent", at);
  if (*m > 1) f.severity = Severity::Note;
  f.what = fmt::format("batch normalisation sees micro-batches of {:g}, whatever is accumulated", *m);
  f.consequence = "its statistics are those of single examples";
  f.fix = "a larger micro-batch, frozen or group normalisation, or SyncBatchNorm";
  (void)files;
}

}  // namespace batchwright::check
