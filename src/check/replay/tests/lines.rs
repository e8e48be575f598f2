//! Random operators, as lines of text.

use super::random::Random;

trait Draw {
    /// A number below `end`.
    fn below(&mut self, end: u64) -> u64;
    /// One of `first..=last`.
    fn of(&mut self, first: u64, last: u64) -> u64;
}

impl Draw for Random {
    fn below(&mut self, end: u64) -> u64 {
        self.within(0..=end - 1)
    }

    fn of(&mut self, first: u64, last: u64) -> u64 {
        self.within(first..=last)
    }
}

/// Output positions of a window, as TFLM computes them.
fn outputs(input: u64, size: u64, stride: u64, dilation: u64, padding: u64) -> u64 {
    let covered = (size - 1) * dilation + 1;
    match padding {
        0 => input.div_ceil(stride),
        _ => (input + stride).saturating_sub(covered) / stride,
    }
}

/// A random convolution, depthwise convolution, or pool; `None` if there is no output.
pub(super) fn windowed(r: &mut Random, ty: &str, kind: &str) -> Option<String> {
    let (n, h, w) = (r.pick(&[1, 1, 2]), r.of(1, 9), r.of(1, 9));
    let h = if r.below(5) == 0 { 1 } else { h };
    let (kh, kw) = (r.of(1, 4), r.of(1, 4));
    let (kh, kw) = if r.below(3) == 0 { (1, 1) } else { (kh, kw) };
    let kh = if h == 1 && r.below(2) == 0 { 1 } else { kh };
    let (sh, sw) = (r.of(1, 3), r.of(1, 3));
    let (dh, dw) = match kind {
        "pool" => (1, 1),
        _ => (r.pick(&[1, 1, 1, 2]), r.pick(&[1, 1, 1, 2])),
    };
    let padding = r.below(2);
    let (oh, ow) = (
        outputs(h, kh, sh, dh, padding),
        outputs(w, kw, sw, dw, padding),
    );
    if oh == 0 || ow == 0 {
        return None;
    }
    let strides = format!("padding={padding} stride_h={sh} stride_w={sw}");
    let dilations = format!("dilation_h_factor={dh} dilation_w_factor={dw}");
    let weights = if ty == "f32" { "f32" } else { "i8" };
    let c = r.of(1, 9);
    Some(match kind {
        "conv" => {
            let groups = r.pick(&[1, 1, 1, 2]);
            let (ci, co) = (c * groups, r.of(1, 9) * groups);
            format!(
                "CONV_2D {ty}:{n},{h},{w},{ci}/1 {weights}:{co},{kh},{kw},{c}/1! > {ty}:{n},{oh},{ow},{co}/1 \
                 {strides} {dilations}"
            )
        }
        "depthwise" => {
            let m = r.pick(&[1, 1, 2, 3, 4]);
            let c = r.pick(&[c, c, 1, 130]);
            let co = c * m;
            format!(
                "DEPTHWISE_CONV_2D {ty}:{n},{h},{w},{c}/1 {weights}:1,{kh},{kw},{co}/1! > {ty}:{n},{oh},{ow},{co}/1 \
                 {strides} {dilations} depth_multiplier={m}"
            )
        }
        _ => {
            let name = match (ty, r.below(3)) {
                ("f32", 2) => "L2_POOL_2D",
                (_, 1) => "MAX_POOL_2D",
                _ => "AVERAGE_POOL_2D",
            };
            format!(
                "{name} {ty}:{n},{h},{w},{c}/1 > {ty}:{n},{oh},{ow},{c}/1 {strides} filter_height={kh} \
                 filter_width={kw}"
            )
        }
    })
}

fn list(dims: &[u64]) -> String {
    let dims: Vec<_> = dims.iter().map(u64::to_string).collect();
    dims.join(",")
}

/// A random operator of another kind.
pub(super) fn other(r: &mut Random) -> String {
    let ty = r.pick(&["f32", "i8", "i8", "i16"]);
    let dims: Vec<u64> = (0..r.of(1, 4)).map(|_| r.of(1, 5)).collect();
    let shape = list(&dims);
    match r.below(14) {
        0 => {
            let (a, b) = r.pick(&[
                ("f32", "i8"),
                ("i8", "i16"),
                ("i16", "i8"),
                ("f32", "i16"),
                ("i8", "i8"),
            ]);
            format!("QUANTIZE {a}:{shape}/1 > {b}:{shape}/1")
        }
        1 => format!("RELU {ty}:{shape}/1 > {ty}:{shape}/1"),
        2 => {
            let out = if ty == "i8" {
                r.pick(&["i8", "i16"])
            } else {
                ty
            };
            format!("SOFTMAX {ty}:{shape}/1 > {out}:{shape}/1 beta=1.0")
        }
        3 => {
            let name = r.pick(&["ADD", "MUL", "SUB", "MAXIMUM"]);
            // One operand, or each in other dimensions.
            let smaller = |r: &mut Random| -> Vec<u64> {
                let all = r.below(2) == 0;
                dims.iter()
                    .map(|&d| if all || r.below(2) == 0 { d } else { 1 })
                    .collect()
            };
            let (mut a, mut b) = (smaller(r), smaller(r));
            for d in 0..dims.len() {
                if a[d] != dims[d] && b[d] != dims[d] {
                    a[d] = dims[d];
                }
            }
            if b[0] == 1 && r.below(2) == 0 {
                b.remove(0);
            } else if a[0] == 1 && b.len() == a.len() && r.below(2) == 0 && a.len() > 1 {
                a.remove(0);
                if b[0] != dims[0] {
                    b[0] = dims[0];
                }
            }
            format!(
                "{name} {ty}:{}/1 {ty}:{}/1 > {ty}:{shape}/1",
                list(&a),
                list(&b)
            )
        }
        4 => {
            let (rows, depth, columns) = (r.of(1, 5), r.of(1, 9), r.of(1, 9));
            let weights = if ty == "f32" { "f32" } else { "i8" };
            let (a, b) = match r.below(2) {
                0 => (format!("{rows},{depth}"), format!("{rows},{columns}")),
                _ => (format!("1,{rows},{depth}"), format!("1,{rows},{columns}")),
            };
            format!(
                "FULLY_CONNECTED {ty}:{a}/1 {weights}:{columns},{depth}/1! > {ty}:{b}/1 keep_num_dims=true"
            )
        }
        5 | 6 => {
            let axis = r.below(dims.len() as u64) as usize;
            let count = r.of(1, 3);
            let mut total = 0;
            let parts: Vec<String> = (0..count)
                .map(|_| {
                    let mut part = dims.clone();
                    part[axis] = r.of(1, 3);
                    total += part[axis];
                    format!("{ty}:{}/1", list(&part))
                })
                .collect();
            let mut whole = dims.clone();
            whole[axis] = total;
            let whole = format!("{ty}:{}/1", list(&whole));
            let parts = parts.join(" ");
            match r.below(2) {
                0 => format!("CONCATENATION {parts} > {whole} axis={axis}"),
                _ => format!(
                    "SPLIT_V {whole} i32:{count}!1 i32:!{axis} > {parts} num_splits={count}"
                ),
            }
        }
        7 => {
            let (mut out, mut pads) = (Vec::new(), Vec::new());
            for &d in &dims {
                let (before, after) = (r.below(3), r.below(3));
                out.push(d + before + after);
                pads.extend([before, after]);
            }
            format!(
                "PAD {ty}:{shape}/1 i32:{},2!{} > {ty}:{}/1",
                dims.len(),
                list(&pads),
                list(&out)
            )
        }
        8 => {
            let (mut begin, mut size) = (Vec::new(), Vec::new());
            for &d in &dims {
                begin.push(r.below(d));
                size.push(r.of(1, d - begin.last().unwrap()));
            }
            let n = dims.len();
            format!(
                "SLICE {ty}:{shape}/1 i32:{n}!{} i32:{n}!{} > {ty}:{}/1",
                list(&begin),
                list(&size),
                list(&size)
            )
        }
        9 => {
            let (mut begin, mut end, mut step, mut out) = (vec![], vec![], vec![], vec![]);
            for &d in &dims {
                let (b, s) = (r.below(d), r.of(1, 2));
                let e = r.of(b + 1, d);
                out.push((e - b).div_ceil(s));
                begin.push(b);
                end.push(e);
                step.push(s);
            }
            let n = dims.len();
            format!(
                "STRIDED_SLICE {ty}:{shape}/1 i32:{n}!{} i32:{n}!{} i32:{n}!{} > {ty}:{}/1 begin_mask=0",
                list(&begin),
                list(&end),
                list(&step),
                list(&out)
            )
        }
        10 => {
            let mut order: Vec<u64> = (0..dims.len() as u64).collect();
            for i in (1..order.len()).rev() {
                order.swap(i, r.below(i as u64 + 1) as usize);
            }
            let out: Vec<u64> = order.iter().map(|&d| dims[d as usize]).collect();
            format!(
                "TRANSPOSE {ty}:{shape}/1 i32:{}!{} > {ty}:{}/1",
                dims.len(),
                list(&order),
                list(&out)
            )
        }
        11 => {
            let (h, w, oh, ow, c) = (r.of(1, 6), r.of(1, 6), r.of(1, 9), r.of(1, 9), r.of(1, 4));
            let name = r.pick(&["RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"]);
            let ty = r.pick(&["f32", "i8"]);
            let (corners, half) = r.pick(&[(false, false), (true, false), (false, true)]);
            format!(
                "{name} {ty}:1,{h},{w},{c}/1 i32:2!{oh},{ow} > {ty}:1,{oh},{ow},{c}/1 align_corners={corners} \
                 half_pixel_centers={half}"
            )
        }
        12 => {
            let (h, w, c) = (r.of(1, 5), r.of(1, 5), r.of(1, 5));
            let ty = r.pick(&["f32", "i8"]);
            format!("MEAN {ty}:1,{h},{w},{c}/1 i32:2!1,2 > {ty}:1,1,1,{c}/1 keep_dims=true")
        }
        _ => {
            let (b, h, w, c) = (r.of(1, 2), r.of(1, 4), r.of(1, 4), r.of(1, 4));
            let s = r.of(1, 3);
            let ty = r.pick(&["f32", "i8"]);
            let wide = format!("{ty}:{b},{},{},{c}/1", h * s, w * s);
            let deep = format!("{ty}:{b},{h},{w},{}/1", c * s * s);
            match r.below(2) {
                0 => format!("SPACE_TO_DEPTH {wide} > {deep} block_size={s}"),
                _ => format!("DEPTH_TO_SPACE {deep} > {wide} block_size={s}"),
            }
        }
    }
}

/// A random operator that picks, spreads, sums, or multiplies.
pub(super) fn rarer(r: &mut Random) -> String {
    let ty = r.pick(&["f32", "i8", "i16"]);
    let two = r.pick(&["f32", "i8"]);
    let dims: Vec<u64> = (0..r.of(1, 4)).map(|_| r.of(1, 5)).collect();
    let shape = list(&dims);
    let axis = r.below(dims.len() as u64) as usize;
    match r.below(17) {
        0 => {
            let name = r.pick(&["LESS", "EQUAL", "GREATER_EQUAL"]);
            let ty = r.pick(&["f32", "i8", "i32"]);
            format!("{name} {ty}:{shape}/1 {ty}:{shape}/1 > bool:{shape}")
        }
        1 => {
            let count = r.of(1, 4);
            let positions: Vec<u64> = (0..count).map(|_| r.below(dims[axis])).collect();
            let mut out = dims.clone();
            out[axis] = count;
            format!(
                "GATHER {two}:{shape}/1 i32:{count}!{} > {two}:{}/1 axis={axis}",
                list(&positions),
                list(&out)
            )
        }
        2 => {
            let mode = r.below(2);
            let (mut out, mut pads) = (Vec::new(), Vec::new());
            for &d in &dims {
                let most = d - u64::from(mode == 0);
                let (before, after) = (r.of(0, most), r.of(0, most));
                out.push(d + before + after);
                pads.extend([before, after]);
            }
            format!(
                "MIRROR_PAD {two}:{shape}/1 i32:{},2!{} > {two}:{}/1 mode={mode}",
                dims.len(),
                list(&pads),
                list(&out)
            )
        }
        3 => {
            let from: Vec<u64> = dims
                .iter()
                .map(|&d| if r.below(2) == 0 { d } else { 1 })
                .collect();
            format!(
                "BROADCAST_TO {ty}:{}/1 i32:{}!{shape} > {ty}:{shape}/1",
                list(&from),
                dims.len()
            )
        }
        4 => {
            let (b, h, w, c) = (r.of(1, 2), r.of(1, 4), r.of(1, 4), r.of(1, 3));
            let (bh, bw) = (r.of(1, 3), r.of(1, 3));
            let (top, left) = (r.below(3), r.below(3));
            let (bottom, right) = ((bh - (h + top) % bh) % bh, (bw - (w + left) % bw) % bw);
            let many = list(&[
                b * bh * bw,
                (h + top + bottom) / bh,
                (w + left + right) / bw,
                c,
            ]);
            let wide = list(&[b, h, w, c]);
            let margins = format!("i32:2!{bh},{bw} i32:2,2!{top},{bottom},{left},{right}");
            match r.below(2) {
                0 => format!("SPACE_TO_BATCH_ND {two}:{wide}/1 {margins} > {two}:{many}/1"),
                _ => format!("BATCH_TO_SPACE_ND {two}:{many}/1 {margins} > {two}:{wide}/1"),
            }
        }
        5 => format!(
            "CUMSUM {two}:{shape}/1 i32:1!{axis} > {two}:{shape}/1 exclusive={} reverse={}",
            r.below(2) == 0,
            r.below(2) == 0
        ),
        6 => {
            let mut out = dims.clone();
            out.remove(axis);
            format!("ARG_MAX {two}:{shape}/1 i32:1!{axis} > i32:{}", list(&out))
        }
        7 => {
            let axis = r.below(dims.len() as u64 + 1) as usize;
            let count = r.of(1, 3);
            let mut whole = dims.clone();
            whole.insert(axis, count);
            let part = format!("{ty}:{shape}/1");
            let parts = vec![part; count as usize].join(" ");
            let whole = format!("{ty}:{}/1", list(&whole));
            match r.below(2) {
                0 => format!("PACK {parts} > {whole} axis={axis} values_count={count}"),
                _ => format!("UNPACK {whole} > {parts} axis={axis} num={count}"),
            }
        }
        8 => {
            let count = r.of(1, 3);
            let mut whole = dims.clone();
            whole[axis] *= count;
            let parts = vec![format!("{ty}:{shape}/1"); count as usize].join(" ");
            format!(
                "SPLIT i32:!{axis} {ty}:{}/1 > {parts} num_splits={count}",
                list(&whole)
            )
        }
        9 => {
            let name = r.pick(&[
                "RESHAPE",
                "SQUEEZE",
                "EXPAND_DIMS",
                "LOGISTIC",
                "LOG_SOFTMAX",
                "L2_NORMALIZATION",
            ]);
            let second = if name == "EXPAND_DIMS" {
                " i32:1!0"
            } else {
                ""
            };
            format!("{name} {two}:{shape}/1{second} > {two}:{shape}/1")
        }
        10 => {
            let (b, m, n, depth) = (r.of(1, 2), r.of(1, 4), r.of(1, 4), r.of(1, 5));
            let (x, y) = (r.below(2) == 0, r.below(2) == 0);
            let left = if x { [depth, m] } else { [m, depth] };
            let right = if y { [n, depth] } else { [depth, n] };
            let right_batch = if r.below(3) == 0 { 1 } else { b };
            format!(
                "BATCH_MATMUL {two}:{b},{}/1 {two}:{right_batch},{}/1 > {two}:{b},{m},{n}/1 adj_x={x} adj_y={y}",
                list(&left),
                list(&right)
            )
        }
        11 => {
            let (h, w, ci, co) = (r.of(1, 4), r.of(1, 4), r.of(1, 4), r.of(1, 4));
            let (kh, kw, sh, sw) = (r.of(1, 3), r.of(1, 3), r.of(1, 2), r.of(1, 2));
            let (oh, ow) = (h * sh, w * sw);
            let weights = if ty == "f32" { "f32" } else { "i8" };
            format!(
                "TRANSPOSE_CONV i32:4!1,{oh},{ow},{co} {weights}:{co},{kh},{kw},{ci}/1! {ty}:1,{h},{w},{ci}/1 > \
                 {ty}:1,{oh},{ow},{co}/1 padding=0 stride_h={sh} stride_w={sw}"
            )
        }
        12 => {
            let (b, t, i, h) = (r.of(1, 2), r.of(1, 4), r.of(1, 5), r.of(1, 5));
            let major = r.below(2) == 0;
            let (x, y) = if major { (t, b) } else { (b, t) };
            let (ty, cell) = r.pick(&[("f32", "f32"), ("i8", "i16")]);
            let weights = format!("{ty}:{h},{i}/1!");
            let recurrent = format!("{ty}:{h},{h}/1!");
            let bias = format!("{}:{h}/1!", if ty == "f32" { "f32" } else { "i32" });
            format!(
                "UNIDIRECTIONAL_SEQUENCE_LSTM {ty}:{x},{y},{i}/1 {} {} - - - {} - - {ty}:{b},{h}/1~ \
                 {cell}:{b},{h}/1~ - - - - > {ty}:{x},{y},{h}/1 time_major={major}",
                [weights.as_str(); 4].join(" "),
                [recurrent.as_str(); 4].join(" "),
                [bias.as_str(); 4].join(" "),
            )
        }
        13 => format!("SELECT_V2 bool:{shape} {ty}:{shape}/1 {ty}:{shape}/1 > {ty}:{shape}/1"),
        14 => format!("ADD_N {two}:{shape}/1 {two}:{shape}/1 {two}:{shape}/1 > {two}:{shape}/1"),
        15 => {
            let mut out = dims.clone();
            out.remove(axis);
            let name = r.pick(&["SUM", "REDUCE_MAX", "MEAN"]);
            format!(
                "{name} {two}:{shape}/1 i32:1!{axis} > {two}:{}/1 keep_dims=false",
                list(&out)
            )
        }
        _ => {
            let (from, to) = r.pick(&[
                ("i8", "f32"),
                ("i16", "f32"),
                ("i8", "i32"),
                ("i32", "f32"),
                ("f32", "i16"),
            ]);
            let name = if to == "f32" { "DEQUANTIZE" } else { "CAST" };
            format!("{name} {from}:{shape}/1 > {to}:{shape}/1")
        }
    }
}
