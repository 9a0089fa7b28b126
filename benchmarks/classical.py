"""Models of scikit-learn as skl2onnx writes them, beside ONNX Runtime, one row and sixty.

    pip install skl2onnx scikit-learn
    python benchmarks/classical.py [NAME ...]

Classifiers end in ZipMap, as ``to_onnx`` has it by default: a dict a row. Each run has other rows:
a processor learns which way a few rows go down a tree. Rounds alternate; the median of a round's
ratio is shown, and whether results agree.
"""

from __future__ import annotations

import statistics
import sys
import time
import warnings
from typing import Any

import numpy as np
import onnxruntime
from skl2onnx import to_onnx
from sklearn.cluster import KMeans
from sklearn.datasets import load_diabetes, load_iris
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier
from sklearn.mixture import GaussianMixture
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, PolynomialFeatures, StandardScaler
from sklearn.svm import SVC, NuSVR

import hagane

IRIS, FLOWERS = load_iris(return_X_y=True)
PATIENTS, PROGRESS = load_diabetes(return_X_y=True)
NAMED = np.array(["setosa", "versicolor", "virginica"])[FLOWERS]
MODELS: dict[str, tuple[Any, Any, Any]] = {
    "logistic regression": (LogisticRegression(), IRIS, FLOWERS),
    "logistic regression, texts": (LogisticRegression(), IRIS, NAMED),
    "linear, SGD": (SGDClassifier(), IRIS, FLOWERS),
    "naive Bayes": (GaussianNB(), IRIS, FLOWERS),
    "random forest": (RandomForestClassifier(30, random_state=0), IRIS, FLOWERS),
    "random forest, texts": (RandomForestClassifier(30, random_state=0), IRIS, NAMED),
    "extra trees": (ExtraTreesClassifier(30, random_state=0), IRIS, FLOWERS),
    "gradient boosting": (GradientBoostingClassifier(n_estimators=20), IRIS, FLOWERS),
    "AdaBoost": (AdaBoostClassifier(n_estimators=10), IRIS, FLOWERS),
    "bagging": (BaggingClassifier(random_state=0), IRIS, FLOWERS),
    "SVC with probabilities": (SVC(probability=True), IRIS, FLOWERS),
    "MLP": (MLPClassifier((7,), max_iter=50), IRIS, FLOWERS),
    "scaler, PCA, logistic": (
        make_pipeline(StandardScaler(), PCA(2), LogisticRegression()),
        IRIS,
        FLOWERS,
    ),
    "bins, logistic": (
        make_pipeline(KBinsDiscretizer(4, encode="onehot-dense"), LogisticRegression()),
        IRIS,
        FLOWERS,
    ),
    "nearest neighbours": (KNeighborsClassifier(), IRIS, FLOWERS),
    "k-means": (KMeans(3, random_state=0), IRIS, FLOWERS),
    "Gaussian mixture": (GaussianMixture(3, random_state=0), IRIS, FLOWERS),
    "isolation forest": (IsolationForest(n_estimators=20, random_state=0), IRIS, FLOWERS),
    "ridge": (Ridge(), PATIENTS, PROGRESS),
    "polynomials, ridge": (make_pipeline(PolynomialFeatures(3), Ridge()), PATIENTS, PROGRESS),
    "random forest regressor": (RandomForestRegressor(30), PATIENTS, PROGRESS),
    "NuSVR": (NuSVR(), PATIENTS, PROGRESS),
    "nearest neighbours regressor": (KNeighborsRegressor(), PATIENTS, PROGRESS),
    "Gaussian process": (GaussianProcessRegressor(), PATIENTS[:60], PROGRESS[:60]),
}


def agree(one: Any, other: Any) -> bool:
    """Whether two outputs of a model are the same but for rounding."""
    if isinstance(one, list):
        return all(
            [*a] == [*b] and np.allclose([*a.values()], [*b.values()], 1e-3, 1e-5)
            for a, b in zip(one, other, strict=True)
        )
    if one.dtype.kind in "fc":
        return bool(np.allclose(one, other, 1e-3, 1e-4 * (1 + np.abs(other).max())))
    return bool((one == other).all())


def ratio(session: Any, other: Any, x: np.ndarray, count: int, rounds: int = 15) -> float:
    """Return the other's time for some rows over the session's, a median of alternating rounds."""
    draw = np.random.default_rng(0)
    feeds = [{"X": x[draw.choice(len(x), count)]} for _ in range(200)]
    found = []
    for _ in range(rounds):
        times = []
        for each in (other, session):
            each.run(None, feeds[0])
            start = time.perf_counter()
            for feed in feeds:
                each.run(None, feed)
            times.append(time.perf_counter() - start)
        found.append(times[0] / times[1])
    return statistics.median(found)


def main() -> None:
    warnings.simplefilter("ignore")
    chosen = sys.argv[1:] or list(MODELS)
    ratios = []
    print(f"{'ONNX Runtime / hagane':<30} {'one row':>8} {'60 rows':>8}")
    for name in chosen:
        model, x, y = MODELS[name]
        x = x.astype(np.float32)
        model.fit(x, y)
        data = to_onnx(model, x[:1], target_opset={"": 18, "ai.onnx.ml": 3}).SerializeToString()
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        other = onnxruntime.InferenceSession(data, options, ["CPUExecutionProvider"])
        session = hagane.InferenceSession(data)
        same = all(
            agree(a, b)
            for rows in (1, 7, 60)
            for a, b in zip(
                session.run(None, {"X": x[:rows]}), other.run(None, {"X": x[:rows]}), strict=True
            )
        )
        found = [ratio(session, other, x, rows) for rows in (1, 60)]
        ratios += found
        print(
            f"{name:<30} {found[0]:8.2f} {found[1]:8.2f}  {'' if same else 'differs'}", flush=True
        )
    print(f"geometric mean {statistics.geometric_mean(ratios):.2f}, least {min(ratios):.2f}")


if __name__ == "__main__":
    main()
