"""Both models side by side: the original in PyTorch, the converted one in JAX, stage by stage to the first place that differs.

`migrate.check(...)` is `migrate.check.run.check`; this package is callable so that the name is the same function whatever was
imported first.
"""

import sys
from types import ModuleType
from typing import Any


class _Callable(ModuleType):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from migrate.check.run import check

        return check(*args, **kwargs)


sys.modules[__name__].__class__ = _Callable
