"""The code of the published kernel-authoring reference, section 3 "Writing Kernels", beyond its basic pattern.

Its lines stand here word for word (`flydsl` -> `flylab`), in kernels that give their names values and write what they
compute: two blocks of 64 threads; R is the result, A and X hold one number for each thread, n is a runtime number.
"""

import flylab.compiler as flyc
import flylab.expr as fx
from flylab.expr import arith, const_expr, gpu, range_constexpr

Vec = fx.Vector
THREADS = 128


@flyc.jit
def launch(kernel: fx.Constexpr, R: fx.Tensor, A: fx.Tensor, X: fx.Tensor, n: fx.Int32):
    kernel(R, A, X, n).launch(grid=2, block=64)


# "Current Syntax Quick Reference"
@flyc.kernel
def quick_reference(R: fx.Tensor, A: fx.Tensor, X: fx.Tensor, n: fx.Int32):
    tx = gpu.thread_id("x")
    bx = gpu.block_id("x")
    by = gpu.block_id("y")

    i32_m: fx.Int32
    i32_m = n
    c_m = fx.Int64(i32_m)
    c4 = fx.Int64(4)
    zero_f = fx.Float32(0.0)

    layout = fx.make_layout((4, 64), (64, 1))
    coord = fx.idx2crd(tx, layout)
    wave_id = fx.get(coord, 0)
    lane_id = fx.get(coord, 1)

    acc = Vec.filled(4, 0.0, fx.Float32)
    raw_vec = Vec.from_elements([X[0], 1.5, X[1], 2.5], fx.Float32).ir_value()
    v_i64 = Vec(raw_vec).bitcast(fx.Int64)
    elem0 = v_i64[0]

    tensor, M, N = A, 2, 64
    buf = fx.rocdl.make_buffer_tensor(tensor)          # preferred buffer-resource view
    tA  = fx.make_view(fx.get_iter(buf), fx.make_layout((M, N), (N, 1)))
    high = fx.Int32(elem0 >> 32)  # the bits of 1.5
    R[bx * 64 + tx] = (
        fx.Int32(c_m * c4) + wave_id * 1000 + lane_id + tA[bx, tx] + by + fx.Int32(acc[3] + zero_f)
        + fx.Int32(high.bitcast(fx.Float32) * 2.0)
    )


# "Thread/Block Hierarchy", the legacy spelling beside the current one
@flyc.kernel
def both_spellings(R: fx.Tensor, A: fx.Tensor, X: fx.Tensor, n: fx.Int32):
    tid_x = gpu.thread_id("x")   # Preferred current spelling
    bid_x = gpu.block_id("x")
    bid_y = gpu.block_id("y")

    # Legacy spelling still appears in older kernels:
    old_x = gpu.thread_idx.x
    old_b = gpu.block_idx.x

    gpu.barrier()                # Workgroup synchronization
    R[bid_x * 64 + tid_x] = old_x * 2 + old_b + bid_y


# "Control Flow"
@flyc.kernel
def both_loops(R: fx.Tensor, A: fx.Tensor, X: fx.Tensor, n: fx.Int32):
    N, runtime_value = 4, n
    acc = fx.Int32(0)
    # Compile-time unrolled loop (emitted inline in IR)
    for i in range_constexpr(N):
        acc = acc + i

    # Runtime loop (lowered by AST rewriting)
    for i in range(runtime_value):
        acc = acc + i * 10
    R[gpu.block_id("x") * 64 + gpu.thread_id("x")] = acc


# "Runtime vs Compile-Time Conditions"
@flyc.kernel
def conditions(R: fx.Tensor, A: fx.Tensor, X: fx.Tensor, n: fx.Int32):
    at = gpu.block_id("x") * 64 + gpu.thread_id("x")
    tid = gpu.thread_id("x")
    lane = tid % fx.Int64(64)
    c_zero = fx.Int64(0)
    c_limit = fx.Int64(8)
    good_val, zero_val = A[at], fx.Int32(0)

    in_range = lane < c_limit
    val = fx.arith.select(in_range, good_val, zero_val)
    # Avoid for simple integer comparisons
    in_range = arith.cmpi(arith.CmpIPredicate.slt, lane, c_limit)
    again = fx.arith.select(in_range, good_val, zero_val)
    R[at] = val + again * 1000

    # Preferred: readable DSL comparisons
    if lane == c_zero:
        R[at] = -1


@flyc.kernel
def compile_time(R: fx.Tensor, A: fx.Tensor, X: fx.Tensor, n: fx.Int32):
    at = gpu.block_id("x") * 64 + gpu.thread_id("x")
    trans_v, max_context_partition_num, WARP_SIZE = False, 32, 64
    value = A[at]
    if const_expr(trans_v):
        value = value.transposed()
    if const_expr(max_context_partition_num <= WARP_SIZE):
        value = value + 1
    R[at] = value


@flyc.kernel
def wrong_const_expr(R: fx.Tensor, A: fx.Tensor, X: fx.Tensor, n: fx.Int32):
    lane, c_zero = gpu.thread_id("x") % fx.Int64(64), fx.Int64(0)
    # Wrong: lane depends on gpu.thread_id("x")
    if const_expr(lane == c_zero):
        R[0] = 1


@flyc.kernel
def by_hand(R: fx.Tensor, A: fx.Tensor, X: fx.Tensor, n: fx.Int32):
    from mlir import ir
    from mlir.dialects import scf

    at = gpu.block_id("x") * 64 + gpu.thread_id("x")
    partition_idx, visible_tile_count = at, n
    R[at] = 0
    cond = arith.unwrap(partition_idx >= visible_tile_count)
    if_op = scf.IfOp(cond, has_else=False)
    with ir.InsertionPoint(if_op.then_block):
        scf.YieldOp([])
    with ir.InsertionPoint.at_block_begin(if_op.then_block):
        R[at] = 5


# "Frontend Semantic Restrictions": what the reference asks for, and what it warns of, which works here
@flyc.kernel
def single_exit(R: fx.Tensor, A: fx.Tensor, X: fx.Tensor, n: fx.Int32):
    at = gpu.block_id("x") * 64 + gpu.thread_id("x")
    a, b, v0, v1 = A[at], n, fx.Int32(7), fx.Int32(8)
    cond = at < n

    def use(dst):
        R[at] = dst * 10 + chosen(cond)

    def chosen(cond):
        if cond:
            out = v0
        else:
            out = v1
        return out

    if cond:
        dst = a
    else:
        dst = b
    use(dst)  # avoid this pattern


@flyc.kernel
def explicit_parameters(R: fx.Tensor, A: fx.Tensor, X: fx.Tensor, n: fx.Int32):
    acc = fx.Float32(0.0)

    def helper(acc):
        acc = acc + fx.Float32(1.0)
        return acc

    acc = helper(acc)
    for _ in range(n):
        acc = helper(acc)
    R[gpu.block_id("x") * 64 + gpu.thread_id("x")] = fx.Int32(acc)


@flyc.kernel
def local_dispatch(R: fx.Tensor, A: fx.Tensor, X: fx.Tensor, n: fx.Int32):
    at = gpu.block_id("x") * 64 + gpu.thread_id("x")
    runtime_cond = at < n

    def then_path():
        local = A[at] * 2
        R[at] = local

    def else_path():
        acc = fx.Int32(0)
        for i in range(n):
            acc = acc + i
        R[at] = acc

    @flyc.jit
    def dispatch():
        if runtime_cond:
            then_path()
        else:
            else_path()

    dispatch()


# "Runtime Loops with Loop-Carried Values (Software Pipelining)"
def pipelined(start, stop, step):
    """The pattern over tiles of two vectors, with these bounds: R[t] is t times the sum of all tiles."""

    @flyc.kernel
    def kernel(R: fx.Tensor, A: fx.Tensor, X: fx.Tensor, n: fx.Int32):
        at = gpu.block_id("x") * 64 + gpu.thread_id("x")
        tiles = fx.make_view(fx.get_iter(A), fx.make_layout((16, 2, 4), (8, 4, 1)))

        def prefetch(i):
            i = fx.Int32(i)
            return [Vec.from_elements([tiles[i, half, k] for k in range_constexpr(4)], fx.Int32) for half in (0, 1)]

        def compute(acc, tile):
            assert len(tile) == 2
            return acc + tile[0] * at + tile[1] * at

        acc_init = Vec.filled(4, 0, fx.Int32)
        # Prologue: load first tile
        tile_0 = prefetch(0)
        tile_0_flat_val1, tile_0_flat_val2 = tile_0
        init_state = [acc_init, tile_0_flat_val1, tile_0_flat_val2]

        # Runtime loop with loop-carried state
        # Use typed DSL integer bounds (fx.Int64) so the AST rewriter does not treat this as a Python unrolled range.
        _start = start(n)
        _stop = stop(n)
        _step = step(n)
        for iv, state in range(_start, _stop, _step, init=init_state):
            acc_in = state[0]
            tile_in = state[1:]

            next_tile = prefetch(iv + 1)      # load NEXT data
            acc_in = compute(acc_in, tile_in)  # compute CURRENT

            results = yield [acc_in] + next_tile  # carry to next iter

        # Epilogue: process last tile from results
        acc_final = results[0]
        tile_final = results[1:]
        acc_final = compute(acc_final, tile_final)
        R[at] = acc_final.reduce(fx.ReductionOp.ADD)

    return kernel


N_TILES = 16
typed_bounds = pipelined(lambda n: fx.Int64(0), lambda n: fx.Int64(N_TILES - 1), lambda n: fx.Int64(1))
plain_bounds = pipelined(lambda n: 0, lambda n: 15, lambda n: 1)
runtime_bounds = pipelined(lambda n: 0, lambda n: n, lambda n: 1)


@flyc.kernel
def one_state(R: fx.Tensor, A: fx.Tensor, X: fx.Tensor, n: fx.Int32):
    """One value is a sequence of one; a raw value crosses a hard boundary and comes back."""
    acc = fx.Float32(1.0)
    for iv, state in range(fx.Int64(0), fx.Int64(5), fx.Int64(1), init=[acc]):
        raw = state[0].ir_value()
        results = yield [fx.Float32(raw) * 2.0 + fx.Float32(iv)]
    R[gpu.block_id("x") * 64 + gpu.thread_id("x")] = fx.Int32(results[0])


# "Arithmetic Operations"
@flyc.kernel
def arithmetic(R: fx.Tensor, A: fx.Tensor, X: fx.Tensor, n: fx.Int32):
    at = gpu.block_id("x") * 64 + gpu.thread_id("x")
    c42 = fx.Int64(42)                              # typed integer constant (preferred)
    c3_14 = fx.Float32(3.14)                        # f32 constant (preferred)
    mask = fx.Int32(0xFF)                            # i32 constant (preferred)

    a, b, scale, cond, count, tile_size = A[at], n, fx.Int32(3), at < n, A[at] + 200, n
    true_val, false_val = fx.Int32(1), fx.Int32(2)
    # Prefer operators / Numeric methods
    total = a + b
    scaled = a * scale
    result = cond.select(true_val, false_val)
    largest = fx.max(a, b)
    smallest = fx.min(a, b)
    tiles = fx.ceildiv(count, tile_size)  # signed/unsigned dispatch from typed operands
    known = fx.Int32(c42) + fx.Int32(c3_14 * 100.0) + (mask & at)
    R[at] = known + total * 2 + scaled * 3 + result * 5 + largest * 7 + smallest * 11 + tiles * 13


# "Internal Types: Vector and Numeric"
@flyc.kernel
def internal_types(R: fx.Tensor, A: fx.Tensor, X: fx.Tensor, n: fx.Int32):
    N, tile_m, idx = 4, 64, 2
    frag_C = fx.make_rmem_tensor(N, fx.Float32)
    at = gpu.block_id("x") * 64 + gpu.thread_id("x")
    for i in range_constexpr(N):
        frag_C[i] = X[at] + fx.Float32(i)

    # Wrap raw vector values
    acc = Vec(frag_C.load())      # vector<Nxf32> -> Vector with * / + operators

    # Indexing (replaces vector.extract)
    val = acc[idx]                 # returns Float32 scalar

    # Bitcast (replaces vector.bitcast)
    raw_vec = acc.bitcast(fx.Int32).ir_value()
    v_f32 = Vec(raw_vec).bitcast(fx.Float32)  # vector<Nxi32> -> vector<Nxf32>

    # Type conversion (replaces arith.trunc_f / arith.ext_f)
    f32_val = val
    bf16_val = f32_val.to(fx.BFloat16)     # f32 -> bf16

    # Arithmetic -- use Python operators, not arith.mulf/addf
    scale_a, scale_b = fx.Float32(2.0), fx.Float32(4.0)
    result = (val * scale_a) * scale_b

    # Splat constant vector
    zeros = Vec.filled(N, 0.0, fx.Float32)

    # Index cast -- use fx.Int32 instead of arith.index_cast
    idx = fx.Int32(gpu.block_id("x") * tile_m)
    ends = Vec.from_elements([v_f32[0], (acc + zeros)[3]], fx.Float32)
    R[at] = fx.Int32(result + fx.Float32(bf16_val) + ends[0] + ends[1] * 16.0) + idx


# "Arith Ops Availability Table": on numbers, and on vectors
@flyc.kernel
def availability(R: fx.Tensor, A: fx.Tensor, X: fx.Tensor, n: fx.Int32):
    at = gpu.block_id("x") * 64 + gpu.thread_id("x")

    def all_of_them(a, b, i, j):
        below = arith.cmpf(arith.CmpFPredicate.OLT, a, b)
        positive = (a < 0.0).select(-a, a)
        floats = below.select(a + b, a * b) + fx.max(a, b) * 2.0 + fx.min(a, b) + positive + fx.maxnumf(a, b)
        return floats + fx.minnumf(a, b) * 4.0, fx.ceildiv(i, j)

    x, q = all_of_them(X[at], fx.Float32(0.5), A[at], n)
    xs, qs = all_of_them(
        Vec.filled(2, X[at], fx.Float32), Vec.filled(2, 0.5, fx.Float32),
        Vec.filled(2, A[at], fx.Int32), Vec.filled(2, n, fx.Int32),
    )
    R[at] = fx.Int32(x * 16.0) + q * 10000
    if fx.Int32(xs[1] * 16.0) + qs[1] * 10000 != R[at]:
        R[at] = -1


# "Printf Debugging"
@flyc.kernel
def debugging(R: fx.Tensor, A: fx.Tensor, X: fx.Tensor, n: fx.Int32):
    tid, bid, value = gpu.thread_id("x"), gpu.block_id("x"), X[gpu.thread_id("x")]
    if tid < n:
        fx.printf("tid={} bid={} val={}", tid, bid, value)
