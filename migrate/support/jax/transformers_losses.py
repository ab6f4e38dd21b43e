"""The losses that Hugging Face's models compute when they are given labels; one for each kind of model."""
import jax.numpy as jnp

from migrate.support.jax.losses import mse_loss
from migrate.support.jax.losses_class import binary_cross_entropy_with_logits, cross_entropy


def token_loss(logits, labels, num_items_in_batch=None, ignore_index=-100, **kwargs):
    """Cross entropy of (tokens, classes): the mean, or the sum over a given number of tokens."""
    loss = cross_entropy(logits, labels, ignore_index=ignore_index, reduction="mean" if num_items_in_batch is None else "sum")
    return loss if num_items_in_batch is None else loss / num_items_in_batch


def causal_lm_loss(logits, labels, vocab_size, num_items_in_batch=None, ignore_index=-100, shift_labels=None, **kwargs):
    """Each position predicts the next label."""
    if shift_labels is None:
        shift_labels = jnp.pad(labels, [(0, 0)] * (labels.ndim - 1) + [(0, 1)], constant_values=ignore_index)[..., 1:]
    return token_loss(logits.astype(jnp.float32).reshape(-1, vocab_size), shift_labels.reshape(-1), num_items_in_batch, ignore_index)


def masked_lm_loss(logits, labels, vocab_size, num_items_in_batch=None, ignore_index=-100, **kwargs):
    """Each position predicts its label."""
    return token_loss(logits.astype(jnp.float32).reshape(-1, vocab_size), labels.reshape(-1), num_items_in_batch, ignore_index)


def sequence_classification_loss(labels, pooled_logits, config, **kwargs):
    """By the kind of problem, which the labels tell where the configuration does not."""
    if config.problem_type is None:
        single = jnp.issubdtype(labels.dtype, jnp.integer)
        config.problem_type = "regression" if config.num_labels == 1 else "single_label_classification" if single else "multi_label_classification"
    if config.problem_type == "regression":
        return mse_loss(pooled_logits.squeeze(), labels.squeeze()) if config.num_labels == 1 else mse_loss(pooled_logits, labels)
    if config.problem_type == "single_label_classification":
        return token_loss(pooled_logits.reshape(-1, config.num_labels), labels.reshape(-1), **kwargs)
    return binary_cross_entropy_with_logits(pooled_logits, labels)


def question_answering_loss(start_logits, end_logits, start_positions, end_positions, **kwargs):
    """The mean of both ends; positions past the text do not count."""
    length = start_logits.shape[1]
    positions = [jnp.clip(p.squeeze(-1) if p.ndim > 1 else p, 0, length) for p in (start_positions, end_positions)]
    losses = [token_loss(logits, p, ignore_index=length) for logits, p in zip((start_logits, end_logits), positions)]
    return (losses[0] + losses[1]) / 2


def token_classification_loss(logits, labels, config, **kwargs):
    """Each position predicts its label."""
    return token_loss(logits.reshape(-1, config.num_labels).astype(jnp.float32), labels.reshape(-1), **kwargs)


LOSSES = {
    "ForCausalLM": causal_lm_loss, "ForMaskedLM": masked_lm_loss, "ForQuestionAnswering": question_answering_loss,
    "ForSequenceClassification": sequence_classification_loss, "ForImageClassification": sequence_classification_loss,
    "ForVideoClassification": sequence_classification_loss, "ForAudioClassification": sequence_classification_loss,
    "ForTokenClassification": token_classification_loss, "ForConditionalGeneration": causal_lm_loss,
}
OWN_LOSSES = ("ForSemanticSegmentation", "ForSegmentation", "ForObjectDetection", "ForInstanceSegmentation", "ForCTC", "ForRNNT", "ForTDT")


def loss_of(name):
    """The loss of a model class, by its name; that of a causal model where the name says nothing."""
    if any(kind in name for kind in OWN_LOSSES):
        raise NotImplementedError(f"the loss of {name}")
    return next((loss for kind, loss in LOSSES.items() if kind in name), causal_lm_loss)
