"""Writes the built-in transformer: all-MiniLM-L6-v2 with int8 weights, as an ONNX graph for one text.

    python quantize.py --teacher W/minilm --out ../minilm.onnx --golden ../golden

The graph takes the token ids of one text, special tokens included, and gives the mean of its tokens' vectors.
It has no mask and no padding, so the vector of a text never depends on other texts.

Each column of a weight matrix has a scale of its own. Weights use 7 of 8 bits: processors without VNNI add pairs
of products in 16 bits, and larger weights would saturate there and give other vectors than newer processors.
Rows of the word embeddings use all 8 bits, since they are only looked up. Activations are quantized at run time.
A few channels reach ten times as far as the others and would take the precision of all: they are divided before
a layer, and the weights of the layer are multiplied instead.
"""

import argparse
import hashlib
import json
from pathlib import Path

import numpy as np
import onnx
from golden import CORPUS, TEACHER_TEXTS, write_quantized
from minilm import MiniLm
from onnx import TensorProto, helper, numpy_helper

LAYERS, HEADS, WIDTH = 6, 12, 384
POSITIONS = 256  # the model was trained on texts of at most this many tokens
EPSILON = 1e-12
WEIGHT_MAX, ROW_MAX = 63, 127
REACH_MAX = 3  # times the median channel; chosen by the cosine to the unquantized model
# A version that the graph needs: Gelu and LayerNormalization are operators of their own since 20 and 17.
OPSET, IR_VERSION = 20, 9


class Reach(MiniLm):
    """The unquantized model; records how far each channel of a layer's input reaches."""

    def __init__(self, folder):
        super().__init__(folder)
        self.reach = {}

    def linear(self, x, name):
        self.reach[name] = np.maximum(self.reach.get(name, 0), np.abs(x).max((0, 1)))
        return super().linear(x, name)

    def divisors(self):
        return {name: np.maximum(one / (REACH_MAX * np.median(one)), 1) for name, one in self.reach.items()}


class Graph:
    """Collects nodes and constants; each method returns the name of a result."""

    def __init__(self, weights, divisors):
        self.divisors = divisors
        self.weights = {name: np.asarray(value, np.float32) for name, value in weights.items()}
        self.nodes, self.constants = [], {}

    def constant(self, name, value):
        self.constants[name] = numpy_helper.from_array(np.array(value, order="C"), name)
        return name

    def node(self, kind, inputs, name, outputs=1, **attributes):
        names = [name] if outputs == 1 else [f"{name}.{at}" for at in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, names, name=name, **attributes))
        return names[0] if outputs == 1 else names

    def quantized(self, x, name):
        """The activations as bytes, their scale and their zero."""
        return self.node("DynamicQuantizeLinear", [x], f"{name}.quantized", 3)

    def linear(self, quantized, weight, bias, name):
        """A layer whose weight is inputs × outputs."""
        values, scale, zero = quantized
        scales = np.abs(weight).max(0) / WEIGHT_MAX
        steps = np.clip(np.rint(weight / scales), -WEIGHT_MAX, WEIGHT_MAX).astype(np.int8)
        inputs = [values, self.constant(f"{name}.steps", steps), zero, self.constant("zero", np.int8(0))]
        product = self.node("MatMulInteger", inputs, f"{name}.product")
        product = self.node("Cast", [product], f"{name}.cast", to=TensorProto.FLOAT)
        scale = self.node("Mul", [scale, self.constant(f"{name}.scales", scales)], f"{name}.scale")
        product = self.node("Mul", [product, scale], f"{name}.scaled")
        return self.node("Add", [product, self.constant(f"{name}.bias", bias)], f"{name}.sum")

    def norm(self, x, name):
        inputs = [x, *(self.constant(f"{name}.{part}", self.weights[f"{name}.{part}"]) for part in ("weight", "bias"))]
        return self.node("LayerNormalization", inputs, f"{name}.norm", axis=-1, epsilon=EPSILON)

    def embeddings(self):
        rows = self.weights["embeddings.word_embeddings.weight"]
        scales = np.abs(rows).max(1, keepdims=True) / ROW_MAX
        scales[scales == 0] = 1
        steps = self.constant("words.steps", np.rint(rows / scales).astype(np.int8))
        steps = self.node("Gather", [steps, "ids"], "words.row")
        steps = self.node("Cast", [steps], "words.cast", to=TensorProto.FLOAT)
        scale = self.node("Gather", [self.constant("words.scales", scales), "ids"], "words.scale")
        words = self.node("Mul", [steps, scale], "words")
        places = self.weights["embeddings.position_embeddings.weight"][:POSITIONS]
        places = places + self.weights["embeddings.token_type_embeddings.weight"][0]
        shape = self.node("Shape", ["ids"], "shape")
        zero, axis = self.constant("start", np.array([0], np.int64)), self.constant("axis", np.array([0], np.int64))
        places = self.node("Slice", [self.constant("places", places), zero, shape, axis], "places.used")
        return self.norm(self.node("Add", [words, places], "embedded"), "embeddings.LayerNorm")

    def layer(self, x, name):
        def part(of, kind):
            return self.weights[f"{name}.{of}.{kind}"]

        parts = [f"attention.self.{which}" for which in ("query", "key", "value")]
        weight = np.concatenate([part(one, "weight").T for one in parts], 1)
        bias = np.concatenate([part(one, "bias") for one in parts])
        # The division of the scores by the root of the head's width, done once in the queries.
        divided = np.where(np.arange(3 * WIDTH) < WIDTH, 1 / np.sqrt(WIDTH // HEADS), 1).astype(np.float32)
        made = self.linear(self.quantized(x, f"{name}.in"), weight * divided, bias * divided, f"{name}.qkv")
        sizes = self.constant("sizes", np.array([-1, 3, HEADS, WIDTH // HEADS], np.int64))
        made = self.node("Reshape", [made, sizes], f"{name}.heads")
        split = []
        for at, order in enumerate(([1, 0, 2], [1, 2, 0], [1, 0, 2])):
            place = self.constant(f"place.{at}", np.int64(at))
            taken = self.node("Gather", [made, place], f"{name}.taken.{at}", axis=1)
            split.append(self.node("Transpose", [taken], f"{name}.turned.{at}", perm=order))
        scores = self.node("MatMul", split[:2], f"{name}.scores")
        scores = self.node("Softmax", [scores], f"{name}.softmax", axis=-1)
        mixed = self.node("MatMul", [scores, split[2]], f"{name}.mixed")
        mixed = self.node("Transpose", [mixed], f"{name}.mixed.turned", perm=[1, 0, 2])
        mixed = self.node("Reshape", [mixed, self.constant("flat", np.array([-1, WIDTH], np.int64))], f"{name}.flat")
        x = self.residual(x, mixed, f"{name}.attention.output")
        inner = self.dense(x, f"{name}.intermediate.dense")
        return self.residual(x, self.node("Gelu", [inner], f"{name}.gelu"), f"{name}.output")

    def dense(self, x, name):
        divisors, weight = self.divisors[name], self.weights[f"{name}.weight"].T
        x = self.node("Mul", [x, self.constant(f"{name}.factors", 1 / divisors)], f"{name}.divided")
        return self.linear(self.quantized(x, name), weight * divisors[:, None], self.weights[f"{name}.bias"], name)

    def residual(self, x, inner, name):
        made = self.dense(inner, f"{name}.dense")
        return self.norm(self.node("Add", [x, made], f"{name}.residual"), f"{name}.LayerNorm")


def model(teacher):
    config = json.loads((teacher / "config.json").read_text())
    assert (config["num_hidden_layers"], config["num_attention_heads"], config["hidden_size"]) == (LAYERS, HEADS, WIDTH)
    exact = Reach(teacher)
    exact.encode(CORPUS + TEACHER_TEXTS, POSITIONS)
    graph = Graph(exact.weights, exact.divisors())
    x = graph.embeddings()
    for layer in range(LAYERS):
        x = graph.layer(x, f"encoder.layer.{layer}")
    graph.node("ReduceMean", [x, "axis"], "mean", keepdims=0)
    ids = helper.make_tensor_value_info("ids", TensorProto.INT64, ["tokens"])
    mean = helper.make_tensor_value_info("mean", TensorProto.FLOAT, [WIDTH])
    made = helper.make_graph(graph.nodes, "all-MiniLM-L6-v2", [ids], [mean], list(graph.constants.values()))
    made = helper.make_model(made, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    made.producer_name = "klnode"
    helper.set_model_props(made, {"licence": "Apache-2.0", "source": "sentence-transformers/all-MiniLM-L6-v2"})
    onnx.checker.check_model(made)
    return made.SerializeToString(deterministic=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--teacher", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--golden", type=Path)
    asked = parser.parse_args()
    made = model(asked.teacher)
    asked.out.write_bytes(made)
    print(f"{asked.out}: {len(made)} bytes, sha256 {hashlib.sha256(made).hexdigest()}")
    if asked.golden:
        write_quantized(asked.out, asked.teacher, asked.golden)


if __name__ == "__main__":
    main()
