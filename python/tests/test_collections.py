"""roost.torch.EmbeddingBagCollection and EmbeddingCollection beside torch's modules, and TorchRec's if it is
installed."""

import types

import pytest

torch = pytest.importorskip("torch")

import roost.torch

try:
    import torchrec
except (ImportError, OSError):  # OSError: its libraries do not fit this torch
    torchrec = None

DEVICES = ["cpu"] + (["cuda"] if torch.cuda.is_available() else [])
needs_torchrec = pytest.mark.skipif(torchrec is None, reason="needs torchrec")


@pytest.fixture(params=DEVICES)
def device(request):
    return request.param


class Jagged:
    """Something of the shape of a KeyedJaggedTensor."""

    def __init__(self, keys, values, lengths):
        self._keys, self._values, self._lengths = keys, values, lengths

    def keys(self):
        return self._keys

    def values(self):
        return self._values

    def lengths(self):
        return self._lengths

    def offsets(self):
        return torch.cat([self._lengths.new_zeros(1), self._lengths.cumsum(0)])


NAMES = ["a", "b", "c", "d"]
# "b" is in two tables; features of a table need not be neighbours.
CONFIGS = [
    {"name": "one", "embedding_dim": 4, "num_embeddings": 50, "feature_names": ["a", "d", "b"]},
    {"name": "two", "embedding_dim": 7, "num_embeddings": 50, "feature_names": ["b"], "pooling": "mean"},
    {"name": "c", "embedding_dim": 3, "num_embeddings": 50, "policy": "lfu"},
]
WITHOUT_POOLING = [{k: v for k, v in config.items() if k != "pooling"} for config in CONFIGS]
RESULTS = [("a", "one"), ("d", "one"), ("b@one", "one"), ("b@two", "two"), ("c", "c")]


def features_of(stride, seed, device, names=NAMES, kind=Jagged):
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(0, 4, (len(names) * stride,), generator=generator)
    values = torch.randint(0, 50, (int(lengths.sum()),), generator=generator)
    return kind(list(names), values.to(device), lengths.to(device))


def parts_of(features, name):
    """Ids and lengths of a feature."""
    at, keys = features.keys().index(name), features.keys()
    lengths = features.lengths().reshape(len(keys), -1)
    start = int(lengths[:at].sum())
    return features.values()[start : start + int(lengths[at].sum())], lengths[at]


def weights_of(tables):
    return {name: table.find(torch.arange(50, device=table.device))[0] for name, table in tables.items()}


@pytest.mark.parametrize("stride", [0, 1, 2, 37])
def test_pooled_rows_are_those_of_embedding_bag(device, stride):
    bags = roost.torch.EmbeddingBagCollection(CONFIGS, optimizer="sgd", lr=0.5, device=device)
    dense = {
        name: torch.nn.EmbeddingBag.from_pretrained(
            rows, freeze=False, mode="mean" if name == "two" else "sum", include_last_offset=True
        )
        for name, rows in weights_of(bags.embedding_bags).items()
    }
    for step in range(4):
        features = features_of(stride, step, device)
        out = bags(features)
        assert out.keys() == [key for key, _ in RESULTS] and out.length_per_key() == [4, 4, 4, 7, 3]
        assert out.values().shape == (stride, 22) and set(out.to_dict()) == set(out.keys())
        loss = 0
        for key, table in RESULTS:
            ids, lengths = parts_of(features, key[0])
            offsets = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
            if stride:
                expected = dense[table](ids, offsets)
                torch.testing.assert_close(out[key], expected, rtol=1e-4, atol=1e-5)
                loss = loss + expected.square().sum()
        out.values().square().sum().backward()
        if stride:
            for each in dense.values():
                each.weight.grad = None
            loss.backward()
            with torch.no_grad():
                for each in dense.values():
                    each.weight -= 0.5 * each.weight.grad
    for name, rows in weights_of(bags.embedding_bags).items():
        torch.testing.assert_close(rows, dense[name].weight.detach(), rtol=1e-3, atol=1e-4)
    assert bags.embedding_bags["c"].policy == "lfu" and not list(bags.parameters())
    if stride == 37:
        assert len(bags.embedding_bags["one"]) > 40


@pytest.mark.parametrize("stride", [0, 1, 19])
def test_rows_are_those_of_each_id(device, stride):
    collection = roost.torch.EmbeddingCollection(WITHOUT_POOLING, optimizer="sgd", lr=1.0, device=device)
    before = weights_of(collection.embeddings)
    features = features_of(stride, 5, device)
    out = collection(features)
    assert list(out) == [key for key, _ in RESULTS]
    for key, table in RESULTS:
        ids, lengths = parts_of(features, key[0])
        assert torch.equal(out[key].values(), before[table][ids])
        assert torch.equal(out[key].lengths(), lengths)
        assert out[key].offsets().tolist() == [0, *lengths.cumsum(0).tolist()]
    sum(part.values().sum() for part in out.values()).backward()
    ids = torch.cat([parts_of(features, name)[0] for name in "adb"])
    times = torch.bincount(ids, minlength=50)[:, None]
    torch.testing.assert_close(weights_of(collection.embeddings)["one"], before["one"] - times)


def test_options(device):
    make = lambda configs, **options: roost.torch.EmbeddingBagCollection(configs, device=device, **options)
    config = {"name": "x", "embedding_dim": 2, "num_embeddings": 400}
    one, other = make([config | {"name": "y"}, config]).embedding_bags.values()
    ids = torch.arange(1000, device=device)
    rows = one.find(ids)[0]
    assert 0.045 < rows.max() <= 0.05 and -0.05 <= rows.min() < -0.045
    assert not torch.equal(rows, other.find(ids)[0])
    assert torch.equal(rows, make([config | {"name": "y"}]).embedding_bags["y"].find(ids)[0])
    assert not torch.equal(rows, make([config | {"name": "y"}], seed=1).embedding_bags["y"].find(ids)[0])
    bags = make([config, config | {"name": "z", "data_type": "BF16", "lr": 0.5}], initializer=("constant", 3))
    assert bags.embedding_bags["z"].dtype == torch.bfloat16 and bags.lr == 0.01
    assert bags.embedding_bags["z"].lr == 0.5
    bags.lr = 0.25
    assert {table.lr for table in bags.embedding_bags.values()} == {0.25}
    features = Jagged(["x", "z"], torch.tensor([7, 8], device=device), torch.tensor([1, 1], device=device))
    out = bags(features).values()
    assert out.dtype == torch.float32 and out.tolist() == [[3.0] * 4]
    features = Jagged(["z", "q", "x"], *(torch.tensor(x, device=device) for x in ([1, 2, 3], [1, 1, 1])))
    assert bags.eval()(features)["x"].tolist() == [[3.0] * 2]  # other features are no matter
    objects = [types.SimpleNamespace(**config, pooling=types.SimpleNamespace(name="MEAN"))]
    assert make(objects)._about[0][2] == "mean"
    for wrong, words in (
        ([config, config], "'x'"),
        ([config | {"name": 5}], "names"),
        ([config | {"name": "items"}], "ModuleDict"),
        ([config | {"name": "a.b"}], "ModuleDict"),
        ([config | {"feature_names": [1]}], "names"),
        ([config | {"pooling": "max"}], "'max'"),
        ([config | {"data_type": "INT8"}], "INT8"),
        ([config | {"init_fn": torch.nn.init.zeros_}], "init_fn"),
        ([config | {"num_embeddings": 0}], "the table 'x': .*capacity"),
        ([config | {"policy": "mru"}], "the table 'x': .*policy='mru'"),
        ([config, config | {"name": "y", "lr": -1}], "the table 'y': .*lr"),
        ([config | {"policy": "score"}], "the table 'x': policy 'score' needs scores"),
        ([config | {"feature_names": "xy"}], "the table 'x': feature_names='xy'"),
        ([config | {"feature_names": ["p", "q", "p"]}], "the table 'x': feature_names=.*each once"),
        ([{"embedding_dim": 2, "num_embeddings": 400}], "a config of the name None"),
        ([types.SimpleNamespace(embedding_dim=2)], "a config of the name None"),
        ([config, 5], "a config of the name None"),
        ([{"name": "x", "embedding_dim": 2}], "the table 'x': a config without num_embeddings"),
        ([{"name": "x", "num_embeddings": 2}], "the table 'x': a config without embedding_dim"),
    ):
        with pytest.raises(ValueError, match=words):
            make(wrong)
    for wrong, words in (
        ([config | {"polcy": "lru"}], "the table 'x': .*polcy"),
        ([config | {"embedding_dim": 2.5}], "the table 'x': .*dim"),
        ([config | {"num_embeddings": "many"}], "the table 'x': "),
        (config, "configs must be a list"),
        ("x", "configs must be a list"),
        (None, "configs must be a list"),
        ([], "configs must be a list"),
    ):
        with pytest.raises(TypeError, match=words):
            make(wrong)
    with pytest.raises(ValueError, match="policy 'score' needs scores"):
        make([config], policy="score")
    with pytest.raises(ValueError, match="the table 'two': rows of ids have no pooling"):
        roost.torch.EmbeddingCollection(CONFIGS, device=device)
    assert list(make(iter([config])).embedding_bags) == ["x"]


def test_features_are_kept_or_refused(device):
    config = {"name": "x", "embedding_dim": 2, "num_embeddings": 400, "feature_names": ["x", "y"]}
    bags = roost.torch.EmbeddingBagCollection([config], device=device)
    some = lambda *numbers: torch.tensor(numbers, device=device)
    with pytest.raises(KeyError, match="no feature 'y'"):
        bags(Jagged(["x"], some(1, 2), some(2)))
    with pytest.raises(ValueError, match="begin at"):
        bags(Jagged(["x", "y"], some(1, 2, 3), some(1, 1)))
    with pytest.raises(ValueError, match="3 lengths"):
        bags(Jagged(["x", "y"], some(1, 2, 3), some(1, 1, 1)))
    with pytest.raises(ValueError, match="2 lengths"):
        bags(Jagged(["x", "x"], some(1, 2), some(1, 1)))
    with pytest.raises(TypeError, match="int64"):
        bags(Jagged(["x", "y"], some(1.0, 2.0), some(1, 1)))
    weighted = Jagged(["x", "y"], some(1, 2, 3), some(1, 2))
    weighted.weights_or_none = lambda: some(0.5, 0.25, 3.0)
    with pytest.raises(ValueError, match="features with weights"):
        bags(weighted)
    takes = roost.torch.EmbeddingBagCollection([config], is_weighted=True, device=device)
    rows = takes.embedding_bags["x"].find(some(1, 2, 3))[0]
    torch.testing.assert_close(takes(weighted)["x"], rows[:1] * 0.5)
    torch.testing.assert_close(takes(weighted)["y"], rows[1:2] * 0.25 + rows[2:] * 3)
    with pytest.raises(ValueError, match="features without weights"):
        takes(Jagged(["x", "y"], some(1, 2), some(1, 1)))
    weighted.weights_or_none = lambda: some(0.5, 0.25)
    with pytest.raises(ValueError, match="2 weights of 3 ids"):
        takes(weighted)
    with pytest.raises(ValueError, match="'mean'"):
        roost.torch.EmbeddingBagCollection([config | {"pooling": "mean"}], is_weighted=True, device=device)
    right = Jagged(["x", "y"], some(1, 2), some(1, 1))
    without = {
        name: types.SimpleNamespace(
            **{n: getattr(right, n) for n in ("keys", "values", "lengths", "offsets") if n != name}
        )
        for name in ("keys", "values", "lengths", "offsets")
    }
    for wrong in (
        None,
        {"x": some(1)},
        some(1, 2),
        [right],
        "xy",
        Jagged(["x", "y"], [1, 2], some(1, 1)),
        Jagged(["x", "y"], some(1, 2), None),
        *without.values(),
    ):
        name = type(wrong).__name__
        with pytest.raises(TypeError, match=f"features of type {name}; pass a KeyedJaggedTensor"):
            bags(wrong)
    assert len(bags.embedding_bags["x"]) == 0
    assert bags(
        types.SimpleNamespace(**{n: getattr(right, n) for n in ("keys", "values", "lengths", "offsets")})
    ).keys() == ["x", "y"]


def keyed_jagged(names, values, lengths):
    return torchrec.KeyedJaggedTensor.from_lengths_sync(names, values, lengths)


@needs_torchrec
@pytest.mark.parametrize("stride", [1, 23])
def test_it_is_as_torchrec(device, stride):
    dims = {"one": 4, "two": 8, "c": 3}
    kinds = [
        torchrec.EmbeddingBagConfig(
            name=each["name"],
            embedding_dim=dims[each["name"]],
            num_embeddings=50,
            feature_names=each.get("feature_names", []),
            pooling=torchrec.PoolingType.MEAN if each["name"] == "two" else torchrec.PoolingType.SUM,
        )
        for each in CONFIGS
    ]
    theirs = torchrec.EmbeddingBagCollection(kinds, device=torch.device(device))
    ours = roost.torch.EmbeddingBagCollection(kinds, optimizer="sgd", lr=0.5, device=device)
    optimizer = torch.optim.SGD(theirs.parameters(), lr=0.5)
    rows = weights_of(ours.embedding_bags)
    assert all(-(50**-0.5) <= each.min() and each.max() <= 50**-0.5 for each in rows.values())
    for name, each in theirs.embedding_bags.items():
        ours.embedding_bags[name].insert(torch.arange(50, device=device), each.weight.detach())
    for step in range(5):
        features = features_of(stride, step, device, kind=keyed_jagged)
        out, expected = ours(features), theirs(features)
        assert type(out) is type(expected) and out.keys() == expected.keys()
        assert out.length_per_key() == expected.length_per_key()
        torch.testing.assert_close(out.values(), expected.values(), rtol=1e-4, atol=1e-5)
        optimizer.zero_grad()
        out.values().square().sum().backward(), expected.values().square().sum().backward()
        optimizer.step()
    for name, each in theirs.embedding_bags.items():
        found = weights_of(ours.embedding_bags)[name]
        torch.testing.assert_close(found, each.weight.detach(), rtol=1e-3, atol=1e-4)
    weighted = torchrec.KeyedJaggedTensor.from_lengths_sync(
        NAMES, features.values(), features.lengths(), weights=features.values().float()
    )
    with pytest.raises(ValueError, match="weights"):
        ours(weighted)


@needs_torchrec
def test_rows_are_as_those_of_torchrec(device):
    kinds = [
        torchrec.EmbeddingConfig(
            name="one", embedding_dim=4, num_embeddings=50, feature_names=["a", "d", "b"]
        ),
        torchrec.EmbeddingConfig(name="two", embedding_dim=4, num_embeddings=50, feature_names=["b"]),
    ]
    theirs = torchrec.EmbeddingCollection(kinds, device=torch.device(device))
    ours = roost.torch.EmbeddingCollection(kinds, device=device)
    for name, each in theirs.embeddings.items():
        ours.embeddings[name].insert(torch.arange(50, device=device), each.weight.detach())
    features = features_of(11, 1, device, kind=keyed_jagged)
    out, expected = ours(features), theirs(features)
    assert list(out) == list(expected)
    for key, part in expected.items():
        assert type(out[key]) is type(part)
        assert torch.equal(out[key].values(), part.values())
        assert torch.equal(out[key].lengths(), part.lengths())
        assert torch.equal(out[key].offsets(), part.offsets())
