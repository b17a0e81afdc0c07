"""Tests decide whether an answer passes, in a process that the answer cannot reach."""

from __future__ import annotations

import os
import subprocess
from functools import cache
from pathlib import Path

import pytest

from forgetmap.records import Outcome
from forgetmap.scoring.grade import Grade
from forgetmap.scoring.sandbox.run import ProgramLimits, run_programs
from forgetmap.scoring.scorer import Program, ProgramResult, ScorerInput
from forgetmap.scoring.scorers.code import code

SOURCE = Path(__file__).parents[2] / "src"
LIMITS = ProgramLimits(seconds=2.0)
TESTS = "assert double(4) == 8\nassert double(7) == 14\n"

FRAMES = """
import os, sys
def double(number):
    frame = sys._getframe()
    while frame is not None:
        known = frame.f_locals
        if "secret" in known and "write_end" in known:
            os.write(known["write_end"], known["secret"])
            os._exit(0)
        frame = frame.f_back
    return 0
"""
DESCRIPTOR = """
import os
def double(number):
    for descriptor in range(3, 64):
        try: os.write(descriptor, b"failed no memory")
        except OSError: pass
    os._exit(2)
"""
AT_LOAD = DESCRIPTOR.replace("def double(number):", "double = abs\nif True:")
EQUALS_ALL = """
class Anything:
    def __eq__(self, other): return True
def double(number): return Anything()
"""
IS_CLOSE_TO_ALL = """
class Near:
    __sub__ = __rsub__ = __abs__ = lambda self, *_: self
    __lt__ = __le__ = lambda *_: True
    __ne__ = lambda *_: False
def double(number): return Near()
"""
OUTLIVES = """
import ctypes, os, time
def double(number):
    ctypes.CDLL(None).prctl(1, 0, 0, 0, 0)
    while os.fork(): pass
    time.sleep(600)
"""
FORGED_REPLIES = """
import gc, os
def double(number):
    for each in gc.get_objects():
        if type(each).__name__ == "ProcessExchange":
            for number in range(100):
                each.channel.send([number, "value", 8, [], ""])
            os._exit(0)
"""
ASKS_BACK = """
import gc
def double(number):
    for each in gc.get_objects():
        if type(each).__name__ == "ProcessExchange":
            return each.ask("load", "raise SystemExit", "tests", [])
"""
TAMPERING = {
    "walks frames": FRAMES,
    "writes to the descriptor": DESCRIPTOR,
    "writes while it is loaded": AT_LOAD,
    "equals everything": EQUALS_ALL,
    "sends replies ahead": FORGED_REPLIES,
    "asks the tests to load": ASKS_BACK,
}


def scored(*responses: str, tests: str = TESTS) -> list[Grade]:
    samples = [
        ScorerInput(f"```python\n{each}\n```", material={"tests": tests}) for each in responses
    ]
    ended = run_programs([code.program(sample) for sample in samples], limits=LIMITS, workers=2)
    return [code.settle(each, end)["acc"] for each, end in zip(samples, ended, strict=True)]


@cache
def tampered() -> dict[str, Grade]:
    return dict(zip(TAMPERING, scored(*TAMPERING.values()), strict=True))


@pytest.mark.parametrize("name", TAMPERING)
def test_an_answer_that_writes_its_own_verdict_is_wrong_and_flagged(name: str) -> None:
    grade = tampered()[name]
    assert (grade.score, grade.outcome) == (0.0, Outcome.INCORRECT)
    assert str(grade.error).startswith("tampering: it ")


def test_a_flag_is_raised_for_tampering_only() -> None:
    sources = [FRAMES, DESCRIPTOR, "def double(x): return 0", "def double(x): raise SystemExit"]
    ended = run_programs([Program(each, TESTS) for each in sources], limits=LIMITS, workers=2)
    assert [(each and each.tampered) for each in ended] == [True, True, False, False]


@pytest.mark.parametrize(
    "test", ["abs(double(4) - 8) < 1e-6", "not double(4) != 8", "abs(8.0 - double(4)) <= 0"]
)
def test_an_object_that_is_close_to_everything_is_tampering(test: str) -> None:
    (grade,) = scored(IS_CLOSE_TO_ALL, tests=f"assert {test}")
    assert (grade.score, grade.outcome) == (0.0, Outcome.INCORRECT)
    assert str(grade.error).startswith("tampering: it ")


EVERY_SECOND_TIME = """
class Liar:
    asked = 0
    def __eq__(self, other):
        Liar.asked += 1
        return Liar.asked % 2 == 1
def double(number): return Liar()
"""
LARGE_NUMBERS_ARE_TRAPS = """
class Liar:
    def __eq__(self, other): return abs(other) < 2**90
def double(number): return Liar()
"""
LATE = """
class Reply:
    asked = 0
    def __bool__(self):
        self.asked += 1
        return self.asked > 1
class Liar:
    def __eq__(self, other): return Reply()
def double(number): return Liar()
"""
NO_DIFFERENCE = """
class Liar:
    __sub__ = __rsub__ = lambda self, other: 0.0
def double(number): return Liar()
"""
NO_DISTANCE = """
class Liar:
    __sub__ = lambda self, other: self
    __abs__ = lambda self: 0.0
def double(number): return Liar()
"""
ALIKE = """
class Liar:
    __eq__ = lambda self, other: {reply}
def double(number): return Liar()
"""
NEAR = "assert abs(double(4) - 8) < 1e-6\nassert abs(double(7) - 14.0) < 1e-6\n"
UNITTEST = """
import doctest, io, unittest
class Double(unittest.TestCase):
    def test(self): {test}
tests = unittest.defaultTestLoader.loadTestsFromTestCase(Double)
assert unittest.TextTestRunner(stream=io.StringIO()).run(tests).wasSuccessful()
"""
FORGED = """
import gc
def double(number):
    for each in gc.get_objects():
        if type(each).__name__ == "ProcessExchange":
            each.channel.send({message})
            each.serve()
"""
SKIP = """[2, "error", ["error", ["raised", 0, "Skip", [["builtin", "Exception"]],
    ["doctest", "unittest.SkipTest"]], ["tuple", ["plain", []]], "", {}], [], ""]"""
LIES = {
    "equal every second time": (EVERY_SECOND_TIME, TESTS),
    "equal unless it looks like a trap": (LARGE_NUMBERS_ARE_TRAPS, TESTS),
    "equal once it counts": (LATE, TESTS),
    "a reply that counts as true": (ALIKE.format(reply="1"), TESTS),
    "an object that counts as true": (ALIKE.format(reply="object()"), TESTS),
    "an array of truths": (ALIKE.format(reply="__import__('numpy').ones(1)"),
                           "assert (double(4) == [8]).all()"),
    "equal to bytes": (ALIKE.format(reply="True"), "assert double(4) == b'8'"),
    "equal to truth": (ALIKE.format(reply="True"), "assert double(4) == True"),
    "equal to a date": (ALIKE.format(reply="True"),
                        "import datetime\nassert double(4) == datetime.date.max"),
    "equal to a number of numpy": (ALIKE.format(reply="True"),
                                   "import numpy\nassert double(4) == numpy.uint8(8)"),
    "no difference": (NO_DIFFERENCE, NEAR),
    "no difference from behind": (NO_DIFFERENCE, "assert abs(8 - double(4)) < 1e-6"),
    "no distance": (NO_DISTANCE, NEAR),
    "almost equal": (NO_DIFFERENCE,
                     UNITTEST.format(test="self.assertAlmostEqual(double(4), 8)")),
    "skipped": (FORGED.format(message=SKIP),
                UNITTEST.format(test="self.assertEqual(double(4), 8)")),
    "skipped by the tests": ("def double(case): case.skipTest('')",
                             UNITTEST.format(test="self.assertEqual(double(self), 8)")),
    "methods of tests replaced": (
        "def double(case): case.assertEqual = lambda *_: 1",
        UNITTEST.format(test="number = double(self); self.assertEqual(number, 8)"),
    ),
    "a kind of reply that is none": (FORGED.format(message='[2, ["value"], 8, [], ""]'),
                                     "try: double(4)\nexcept TypeError: pass"),
    "an array of no kind": (
        FORGED.format(message='[2, "value", ["array", "(2,", [], ""], [], ""]'),
        "try: double(4)\nexcept SyntaxError: pass",
    ),
    "a text that reads attributes": (
        "def double(kind): return kind('{0.double.__globals__}').format(kind)",
        "class Text(str):\n    def double(self): pass\nassert 'Text' in double(Text)",
    ),
}  # fmt: skip
"""What is no double of 4, and tests that took it for one."""


@cache
def lies() -> dict[str, ProgramResult | None]:
    programs = [Program(source, tests) for source, tests in LIES.values()]
    return dict(zip(LIES, run_programs(programs, limits=LIMITS, workers=2), strict=True))


@pytest.mark.parametrize("name", LIES)
def test_no_lie_passes(name: str) -> None:
    result = lies()[name]
    assert result is not None
    assert (result.passed, result.failed_to_start) == (False, False)


def test_an_answer_that_will_not_die_with_its_judge_is_ended() -> None:
    tests = "try: double(1)\nexcept OSError: pass"
    programs = [Program("import ctypes, time\nctypes.CDLL(None).prctl(1, 0, 0, 0, 0)\n"
                        "def f():\n    time.sleep(600)", "raise Exception('over')"),
                Program(OUTLIVES, tests), Program("x = 1", "assert x == 1")]  # fmt: skip
    limits = ProgramLimits(seconds=1.0)
    ended = [each for each in run_programs(programs, limits=limits, workers=1) if each]
    assert [each.failed_to_start for each in ended] == [False] * 3
    assert [each.passed for each in ended] == [False, True, True]
    assert ended[0].reason == "exception: Exception: over"


def test_the_process_of_the_answer_holds_neither_tests_nor_verdict() -> None:
    """All its objects are searched for what stands in the tests, and all its descriptors."""
    search = """
import gc, os, sys
def double(number):
    texts = [each for each in gc.get_objects() if isinstance(each, (str, bytes, dict, list))]
    assert not any("marked-" + "expectation" in str(each)[:10000] for each in texts)
    frame = sys._getframe()
    while frame is not None:
        assert "marked-" + "expectation" not in str(frame.f_locals)
        frame = frame.f_back
    opened = 0
    for descriptor in range(3, 64):
        try: os.fstat(descriptor)
        except OSError: continue
        opened += 1
    assert opened == 1
    return 2 * number
"""
    (grade,) = scored(search, tests=f"{TESTS}assert 'marked-expectation'\n")
    assert (grade.score, grade.error) == (1.0, None)


NAMES_BEHIND = ("__globals__", "__code__", "__closure__", "gi_frame", "_private", "__dict__")


def test_what_tests_hand_over_leads_to_nothing_behind_it() -> None:
    source = f"""
def probe(thing):
    return [name for name in {NAMES_BEHIND!r} if hasattr(thing, name)]
"""
    tests = """
class Thing:
    _private = 1
def generate(): yield 1
assert probe(lambda: 1) == [] and probe(Thing()) == [] and probe(Thing) == []
assert probe(generate()) == [] and probe(Thing().__init__) == []
"""
    (grade,) = scored(source, tests=tests)
    assert (grade.score, grade.error) == (1.0, None)


def test_a_test_that_catches_everything_does_not_hide_the_end_of_an_answer() -> None:
    tests = "try: double(1)\nexcept BaseException: pass\n"
    ended, tampering = scored("import os\ndef double(x): os._exit(0)", DESCRIPTOR, tests=tests)
    assert (ended.score, ended.error) == (0.0, "exit")
    assert str(tampering.error).startswith("tampering")


USES = {
    "class": (
        """
class P:
    def __init__(s,a): s.a=a
    def __add__(s,o): return P(s.a+o.a)
    def __eq__(s,o): return isinstance(o,P) and s.a==o.a
    def __len__(s): return s.a
""",
        """
p=P(2)
assert p.a==2 and p+P(3)==P(5) and len(p)==2 and isinstance(p,P) and not callable(p)
p.a=7
assert p.a==7 and p!=P(1)
""",
    ),
    "own error": (
        """
class E(ValueError):
    def __init__(s,c): super().__init__(f'code {c}'); s.c=c
def f(): raise E(3)
""",
        """
try: f()
except E as e: assert str(e)=='code 3', str(e)
else: assert 0
assert issubclass(E, ValueError)
""",
    ),
    "builtin error": (
        """
def f(x): return 1/x
""",
        """
try: f(0)
except ZeroDivisionError: pass
else: assert 0
""",
    ),
    "mutated": (
        """
def f(x, d): x.sort(); d['k']=x; x.append([1])
""",
        """
x=[3,1]; d={}
f(x,d)
assert x==[1,3,[1]] and d['k'] is x
""",
    ),
    "same": (
        """
def f(x): return x
""",
        """
class A: pass
a=A()
assert f(a) is a
l=[a]
assert f(l) is l
""",
    ),
    "callback": (
        """
def f(g, x): return [g(v) for v in x]
""",
        """
assert f(lambda v: v+1, [1,2])==[2,3]
assert f(str, [1])==['1']
assert f(abs,[-1])==[1]
""",
    ),
    "decorator": (
        """
import functools
def twice(g):
    @functools.wraps(g)
    def h(*a): return g(g(*a))
    return h
""",
        """
@twice
def inc(x): return x+1
assert inc(1)==3 and inc.__name__=='inc'
""",
    ),
    "node of tests": (
        """
def total(n):
    s=0
    while n:
        s+=n.val; n.val=0; n=n.next
    return s
""",
        """
class N:
    def __init__(s,v,n=None): s.val=v; s.next=n
r=N(1,N(2))
assert total(r)==3 and r.val==0
""",
    ),
    "generator": (
        """
def g(n):
    for i in range(n): yield i
""",
        """
import types
assert list(g(3))==[0,1,2]
assert isinstance(g(1), types.GeneratorType)
it=g(2); assert next(it)==0
""",
    ),
    "types": (
        """
import collections, decimal, fractions, datetime
def f(): return collections.Counter('aab')
def g(): return collections.defaultdict(list, a=[1])
def h(): return (1, 2.5, 'x', b'y', None, True, {1}, frozenset({2}), 3+4j, range(3),
        decimal.Decimal('1.5'), fractions.Fraction(1,3), datetime.date(2020,1,2),
        10**6000, float('inf'))
""",
        """
import collections, decimal, fractions, datetime
assert f()==collections.Counter('aab')==dict(a=2,b=1)
d=g(); d['b'].append(2); assert d=={'a':[1],'b':[2]}
assert h()==(1, 2.5, 'x', b'y', None, True, {1}, frozenset({2}), 3+4j, range(3),
        decimal.Decimal('1.5'), fractions.Fraction(1,3), datetime.date(2020,1,2),
        10**6000, float('inf'))
assert type(h()) is tuple
""",
    ),
    "namedtuple": (
        """
from collections import namedtuple
P=namedtuple('P','x y')
def f(): return P(1,2)
""",
        """
r=f()
assert r==(1,2) and r.x==1 and isinstance(r, tuple) and tuple(r)==(1,2)
a,b=r
assert [f()]==[(1,2)] and (1,2)==f() and len(r)==2
""",
    ),
    "numpy": (
        """
import numpy as np
def f(x): return np.asarray(x)*2
def g(): return np.float64(2.5)
""",
        """
import numpy as np
assert (f([1,2])==np.array([2,4])).all() and np.allclose(f(np.ones((2,2))), 2) and g()==2.5
""",
    ),
    "stdout": (
        """
def f(): print('hi')
""",
        """
import io, contextlib
b=io.StringIO()
with contextlib.redirect_stdout(b): f()
assert b.getvalue()=='hi\\n'
""",
    ),
    "stdin": (
        """
def f(): return int(input())+1
""",
        """
import io, sys
sys.stdin=io.StringIO('4\\n')
assert f()==5
""",
    ),
    "input": (
        """
def f(): return input('?')
""",
        """
import builtins
builtins.input=lambda p: p+'x'
assert f()=='?x'
""",
    ),
    "async": (
        """
import asyncio
async def f(x):
    await asyncio.sleep(0)
    return x+1
""",
        """
import asyncio
assert asyncio.run(f(1))==2
""",
    ),
    "enum": (
        """
import enum
class C(enum.Enum):
    R=1
    B=2
def f(): return C.R
""",
        """
assert f()==C.R and f() is C.R and [c.name for c in C]==['R','B'] and f().value==1 and C['B']==C.B
""",
    ),
    "dataclass": (
        """
from dataclasses import dataclass
@dataclass(order=True)
class D:
    a:int
def f(): return [D(2),D(1)]
""",
        """
assert sorted(f())==[D(1),D(2)] and repr(D(1))=='D(a=1)' and len({str(d) for d in f()})==2
""",
    ),
    "with": (
        """
class M:
    def __enter__(s): return 5
    def __exit__(s,*a): return a[0] is ValueError
""",
        """
with M() as x:
    assert x==5
    raise ValueError

""",
    ),
    "deep": (
        """
def f(n):
    r=[]
    for _ in range(n): r=[r]
    return r
""",
        """
x=f(500)
n=0
while x: x=x[0]; n+=1
assert n==500
""",
    ),
    "cycle": (
        """
def f():
    a=[1]; a.append(a); return a
""",
        """
a=f()
assert a[1] is a
""",
    ),
    "big": (
        """
def f(x): return sorted(x)
""",
        """
import random
x=list(range(10**5)); random.shuffle(x)
assert f(x)==list(range(10**5))
""",
    ),
    "import answer": (
        """
def f(): return 1
""",
        """
from answer import f as g
import answer
assert g()==1 and answer.f()==1
""",
    ),
    "unittest": (
        """
def f(x): return x
""",
        """
import unittest
class T(unittest.TestCase):
    def test(self): self.assertEqual(f(3), 3)
r=unittest.TextTestRunner().run(unittest.defaultTestLoader.loadTestsFromTestCase(T))
assert r.wasSuccessful()
""",
    ),
    "isinstance in answer": (
        """
def f(x): return isinstance(x, dict), callable(x)
""",
        """
assert f({})==(True, False) and f(len)==(False, True) and f(lambda: 1)==(False, True)
""",
    ),
    "global var": (
        """
LIMIT=5
def f(): return LIMIT
""",
        """
assert LIMIT==5 and f()==5
""",
    ),
    "partial": (
        """
import functools
f=functools.partial(max, 3)
""",
        """
assert f(5)==5
""",
    ),
    "ordereddict": (
        """
from collections import OrderedDict
def f(): return OrderedDict([('b',1),('a',2)])
""",
        """
assert list(f())==['b','a'] and f()=={'a':2,'b':1}
""",
    ),
    "re": (
        """
import re
def f(s): return re.match('a', s)
""",
        """
assert f('ab') and not f('b') and f('ab').group()=='a'
""",
    ),
    "map": (
        """
def f(x): return map(str, x)
def k(d): return d.keys()
""",
        """
assert list(f([1,2]))==['1','2'] and sorted(k({'b':1,'a':2}))==['a','b'] and set(k({1:2}))=={1}
""",
    ),
    "file": (
        """
def f(n): open(n,'w').write('hi')
""",
        """
import os
f('x.txt')
assert open('x.txt').read()=='hi'
os.remove('x.txt')
""",
    ),
    "stringio": (
        """
def f(s): return s.read()
""",
        """
import io
assert f(io.StringIO('abc'))=='abc'
""",
    ),
    "linked own": (
        """
class N:
    def __init__(s,v): s.v=v; s.next=None
""",
        """
a=N(1); a.next=N(2)
assert a.next.v==2 and a.next.next is None
""",
    ),
    "strsub": (
        """
class S(str): pass
def f(): return S('ab')
""",
        """
assert f()=='ab' and f().upper()=='AB' and isinstance(f(), str)
assert ''.join([str(f())])=='ab' and f'{f()}'=='ab' and f()[0]=='a'
""",
    ),
    "intenum": (
        """
import enum
class L(enum.IntEnum):
    A=1
def f(): return L.A
""",
        """
assert f()==1 and f()+1==2 and [10,20][f()]==20
""",
    ),
    "recursion": (
        """
def f(n): return 1 if n==0 else n*f(n-1)
""",
        """
assert f(50)>0
""",
    ),
    "attributes of an error": (
        """
class E(Exception):
    def __init__(s, code): s.code=code; s.cause=s; super().__init__('failed')
def f(): raise E([1])
""",
        """
try: f()
except E as e: assert e.code==[1] and str(e)=='failed'
else: assert 0
""",
    ),
    "path": (
        """
from pathlib import Path, PurePosixPath
def f(): return Path('a')/'b', PurePosixPath('c')
""",
        """
from pathlib import Path, PurePosixPath
assert f()==(Path('a/b'), PurePosixPath('c'))
""",
    ),
    "equal to plain values": (
        """
from collections import UserDict, UserString, ChainMap
class Near:
    def __init__(s,v): s.v=v
    def __eq__(s,o): return abs(s.v-o)<1e-6
    def __sub__(s,o): return s.v-o
    def __rsub__(s,o): return o-s.v
    def __lt__(s,o): return s.v<o
class Folded(str):
    def __eq__(s,o): return s.lower()==o.lower()
    def __hash__(s): return hash(s.lower())
class Bag(list):
    def __eq__(s,o): return sorted(s)==sorted(o)
class Strict:
    def __eq__(s,o):
        if not isinstance(o, int): raise TypeError('no number')
        return o==3
def f(d): return d.keys(), d.items()
""",
        """
assert Near(0.1+0.2)==0.3 and abs(Near(2)-2.0)<1e-9 and abs(3-Near(2))==1 and Near(-9)<0
assert Folded('Hello')=='hELLO' and Folded('A') in {'a'} and Bag([2,1,3])==[3,2,1]
assert UserDict(a=1)=={'a':1} and UserString('ab')=='ab' and ChainMap({1:2},{3:4})=={1:2,3:4}
assert f({'a':1})[0]=={'a'} and f({'a':1})[1]=={('a',1)} and Strict()==3
try: Strict()=='x'
except TypeError as e: assert str(e)=='no number'
else: assert 0
""",
    ),
    "equal to arrays": (
        """
import numpy as np
class V:
    def __init__(s,v): s.v=np.array(v)
    def __eq__(s,o): return s.v==np.array(o)
""",
        """
import numpy as np
assert (V([1,2])==np.array([1,2])).all() and (V([1,2])==[1,2]).all() and not (V([1])==[2]).any()
assert [V([3])]==[np.array([3])]
""",
    ),
    "conditions of another language": (
        """
class Vague:
    def __bool__(s): raise ValueError('neither')
class Condition:
    def __init__(s,text): s.text=text
    def __str__(s): return s.text
class Column:
    def __eq__(s,o): return Condition(f'age = {o}') if o else Vague()
""",
        """
assert str(Column()==5)=='age = 5'
try: bool(Column()==0)
except ValueError as e: assert str(e)=='neither'
else: assert 0
""",
    ),
    "many named tuples": (
        """
from collections import namedtuple
P=namedtuple('P','x y')
def f(n): return [P(i,i) for i in range(n)]
""",
        """
assert f(1000)==[(i,i) for i in range(1000)]
""",
    ),
    "randomseed": (
        """
import random
def f():
    random.seed(1); return random.random()
""",
        """
import random
random.seed(1)
assert f()==random.random()
""",
    ),
}


@cache
def uses() -> dict[str, ProgramResult | None]:
    programs = [Program(source, tests) for source, tests in USES.values()]
    return dict(zip(USES, run_programs(programs, limits=ProgramLimits(), workers=2), strict=True))


@pytest.mark.parametrize("name", USES)
def test_tests_use_an_answer_as_if_it_were_in_their_process(name: str) -> None:
    assert uses()[name] == ProgramResult(passed=True)


COUNTS = """
import threading, time
started = 0
try:
    while started < 20:
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        started += 1
except RuntimeError:
    pass
raise Exception(started)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_ordinary_users_start_as_many_threads_as_root(tmp_path: Path) -> None:
    python = Path("/usr/bin/python3")
    if not python.exists():
        pytest.skip("no Python that others can read")
    script = f"""
import sys; sys.path.insert(0, {str(tmp_path)!r})
from forgetmap.scoring.sandbox.run import run_programs
from forgetmap.scoring.scorer import Program
print([ran.reason for ran in run_programs([Program({COUNTS!r})] * 2, workers=2)])
"""
    subprocess.run(["cp", "-r", str(SOURCE / "forgetmap"), str(tmp_path / "forgetmap")], check=True)
    for folder in (tmp_path, *tmp_path.parents[:3]):
        folder.chmod(folder.stat().st_mode | 0o055)
    for user in ({}, {"user": 65534, "group": 65534, "extra_groups": []}):
        done = subprocess.run(
            [python, "-B", "-c", script],
            capture_output=True,
            text=True,
            check=False,
            cwd="/",
            **user,
        )  # type: ignore[call-overload]
        assert done.stdout.strip() == str(["exception: Exception: 3"] * 2), done.stderr
