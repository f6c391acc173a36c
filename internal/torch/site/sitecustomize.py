"""A tool of gm puts the folder of this file first on PYTHONPATH, so that each Python process of its program starts here.

Nothing is imported until the program imports torch, or another module that the tool waits for. Of two tools, one within
the other, each has a folder of its own, and each calls the sitecustomize that comes after its own.
"""

import os
import sys

TOOL = "gm"  # the tool's name is put in here
WAITS = {"torch"}  # and here what else it waits for
HOME = os.path.dirname(os.path.abspath(__file__))
HOOK = TOOL + "_hook"
SESSION = os.environ.get(TOOL.upper() + "_DIR", "")


class Finder(object):
    """Stands before the other finders, lets them find the modules that are waited for, and sees those imported."""

    def __init__(self, names):
        self.names = names

    def find_spec(self, name, path=None, target=None):
        if name not in self.names:
            return None
        for finder in self.later():
            find = getattr(finder, "find_spec", None)
            if find is None:
                continue
            spec = find(name, path, target)
            if spec is not None:
                self.watch(name, spec.loader)
                return spec
        return None

    def later(self):
        """Returns the finders after this one: those before it have been asked, and may be asking."""
        finders = list(sys.meta_path)
        return finders[finders.index(self) + 1:] if self in finders else []

    def watch(self, name, loader):
        """Makes the loader call imported once it has run the module; its type and the spec stay as they are."""
        run = getattr(loader, "exec_module", None)
        watchers = getattr(run, "gm_watchers", ())
        if run is None or self in watchers:
            return

        def exec_module(module):
            if module.__name__ != name:
                return run(module)
            vars(loader).pop("exec_module", None)
            run(module)
            self.imported(name, sys.modules.get(name, module))

        exec_module.gm_watchers = watchers + (self,)
        try:
            loader.exec_module = exec_module
        except AttributeError:
            complain("the loader of %s cannot be watched" % name)

    def imported(self, name, module):
        """Tells the tool, which may say what else it waits for."""
        self.names.discard(name)
        try:
            hook = load()
            if hook is not None:
                self.names.update(hook.imported(name, module) or ())
        except Exception as e:
            complain("%s: %s" % (type(e).__name__, e))
        if not self.names and self in sys.meta_path:
            sys.meta_path.remove(self)


def load():
    """Returns the package that does the work, None when the session is over."""
    if HOOK in sys.modules:
        return sys.modules[HOOK]
    folder = os.path.join(HOME, HOOK)
    if not os.path.isdir(folder) or not os.path.isdir(SESSION):
        return None
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location(HOOK, os.path.join(folder, "__init__.py"), submodule_search_locations=[folder])
    module = module_from_spec(spec)
    sys.modules[HOOK] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[HOOK]
        raise
    return module


def complain(text):
    try:
        sys.stderr.write("%s: %s\n" % (TOOL, text))
    except Exception:
        pass  # there is none, or it takes nothing


def start():
    if not os.path.isdir(SESSION):
        return
    names = set(WAITS)
    marks = os.environ.get(TOOL.upper() + "_MARKS", "").partition(":")[0]
    if marks:
        names.add(marks)
    finder = Finder(names)
    sys.meta_path.insert(0, finder)
    for name in sorted(names & set(sys.modules)):
        finder.imported(name, sys.modules[name])


sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or os.curdir) != HOME]
try:
    start()
except Exception as error:
    complain("%s: %s" % (type(error).__name__, error))

# The program's own sitecustomize takes the place of this one. Where there is none, the error is the one that site expects.
sys.modules.pop("sitecustomize", None)
import sitecustomize  # noqa: E402,F401
