//! Models of the order in which kernels of CMSIS-NN and ESP-NN read and write, and the distance that an order needs.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "a test may fail, and each uses a part of it"
)]

use arenaplan::target::{Core, Library};

use super::random::Random;

/// Reads and writes in their order: first byte, and the one behind the last.
#[derive(Default)]
pub struct Events(pub Vec<(bool, i64, i64)>);

impl Events {
    pub fn read(&mut self, start: i64, bytes: i64) {
        self.0.push((false, start, start + bytes));
    }

    pub fn write(&mut self, start: i64, bytes: i64) {
        self.0.push((true, start, start + bytes));
    }

    /// The least distance of the input above the output at which nothing is written over what is read later.
    pub fn distance(&self) -> u64 {
        let mut lowest = None;
        let mut least = 0;
        for &(write, start, end) in self.0.iter().rev() {
            match (write, lowest) {
                (true, Some(lowest)) => least = least.max(end - lowest),
                (true, None) => {}
                (false, _) => lowest = Some(lowest.map_or(start, |l: i64| l.min(start))),
            }
        }
        u64::try_from(least).unwrap()
    }
}

/// A window over an image, with one byte an element.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    pub n: i64,
    pub h: i64,
    pub w: i64,
    pub ci: i64,
    pub co: i64,
    pub kh: i64,
    pub kw: i64,
    pub stride: [i64; 2],
    pub dilation: [i64; 2],
    pub same: bool,
}

impl Window {
    /// Rows and columns of the output, and of the padding before the first.
    pub fn output(&self) -> Option<([i64; 2], [i64; 2])> {
        let along = |size: i64, kernel: i64, stride: i64, dilation: i64| {
            let span = (kernel - 1) * dilation + 1;
            let out = match self.same {
                true => (size + stride - 1) / stride,
                false if size < span => return None,
                false => (size - span) / stride + 1,
            };
            let total = (out - 1) * stride + span - size;
            Some((out, total.max(0) / 2))
        };
        let (oh, top) = along(self.h, self.kh, self.stride[0], self.dilation[0])?;
        let (ow, left) = along(self.w, self.kw, self.stride[1], self.dilation[1])?;
        Some(([oh, ow], [top, left]))
    }

    pub fn options(&self) -> String {
        let padding = if self.same { 0 } else { 1 };
        let ([sh, sw], [dh, dw]) = (self.stride, self.dilation);
        format!(
            "padding={padding} stride_h={sh} stride_w={sw} dilation_h_factor={dh} dilation_w_factor={dw}"
        )
    }

    pub fn conv(&self, weights: &str) -> Option<String> {
        let ([oh, ow], _) = self.output()?;
        let Window {
            n,
            h,
            w,
            ci,
            co,
            kh,
            kw,
            ..
        } = *self;
        Some(format!(
            "CONV_2D i8:{n},{h},{w},{ci}/1 {weights}:{co},{kh},{kw},{ci}/1! > i8:{n},{oh},{ow},{co}/1 {}",
            self.options()
        ))
    }

    pub fn depthwise(&self) -> Option<String> {
        let ([oh, ow], _) = self.output()?;
        let Window {
            n,
            h,
            w,
            ci,
            co,
            kh,
            kw,
            ..
        } = *self;
        Some(format!(
            "DEPTHWISE_CONV_2D i8:{n},{h},{w},{ci}/1 i8:1,{kh},{kw},{co}/1! > i8:{n},{oh},{ow},{co}/1 {} \
             depth_multiplier={}",
            self.options(),
            co / ci
        ))
    }

    /// Reads `count` channels from `channel` on of the window of an output pixel; not its first pixel, if `but_first`.
    pub fn read(&self, events: &mut Events, pixel: i64, channel: i64, count: i64) {
        let ([oh, ow], [top, left]) = self.output().unwrap();
        let (batch, y, x) = (pixel / (oh * ow), pixel / ow % oh, pixel % ow);
        for (ky, kx) in (0..self.kh).flat_map(|ky| (0..self.kw).map(move |kx| (ky, kx))) {
            let row = y * self.stride[0] - top + ky * self.dilation[0];
            let column = x * self.stride[1] - left + kx * self.dilation[1];
            if (0..self.h).contains(&row) && (0..self.w).contains(&column) {
                let at = (batch * self.h + row) * self.w + column;
                events.read(at * self.ci + channel, count);
            }
        }
    }

    /// Windows of `block` pixels are copied, then their outputs are written; a batch's end ends a block.
    pub fn im2col(&self, block: i64) -> Events {
        let ([oh, ow], _) = self.output().unwrap();
        let mut events = Events::default();
        for batch in 0..self.n {
            let pixels: Vec<i64> = (batch * oh * ow..(batch + 1) * oh * ow).collect();
            for block in pixels.chunks(block as usize) {
                for &pixel in block {
                    self.read(&mut events, pixel, 0, self.ci);
                }
                for &pixel in block {
                    events.write(pixel * self.co, self.co);
                }
            }
        }
        events
    }

    /// For each pixel: windows of `block` input channels, then their outputs.
    pub fn channels(&self, block: i64) -> Events {
        let ([oh, ow], _) = self.output().unwrap();
        let mut events = Events::default();
        for pixel in 0..self.n * oh * ow {
            for channel in (0..self.ci).step_by(block as usize) {
                let count = block.min(self.ci - channel);
                self.read(&mut events, pixel, channel, count);
                let each = self.co / self.ci;
                events.write(pixel * self.co + channel * each, count * each);
            }
        }
        events
    }

    /// MAX_POOL_2D in the output itself: a pixel of the window is copied there, then the others are read.
    pub fn maximum(&self) -> Events {
        let ([oh, ow], _) = self.output().unwrap();
        let mut events = Events::default();
        for pixel in 0..self.n * oh * ow {
            let mut window = Events::default();
            self.read(&mut window, pixel, 0, self.ci);
            let mut reads = window.0.into_iter();
            events.0.extend(reads.next());
            events.write(pixel * self.co, self.co);
            for (_, start, _) in reads {
                // Some channels at a time, each written back where it lies in the output.
                events.read(start, self.ci);
            }
        }
        events
    }
}

/// A window of any kind that fits; `ci` and `co` are up to 12.
pub fn window(random: &mut Random) -> Window {
    let mut size = |most: u64| random.within(1..=most) as i64;
    Window {
        n: size(2),
        h: size(9),
        w: size(9),
        ci: size(12),
        co: size(12),
        kh: size(4),
        kw: size(4),
        stride: [size(3), size(3)],
        dilation: [1, 1],
        same: size(2) == 1,
    }
}

/// A matrix product of pixels at `read` and outputs at `write`: `pixels` of them, `step` apart, `length` bytes each.
pub struct Product {
    pub read: i64,
    pub step: i64,
    pub length: i64,
    pub write: i64,
    pub pixels: i64,
    pub co: i64,
}

impl Product {
    /// Pairs of output channels outermost, pairs of pixels inside.
    pub fn scalar(&self, events: &mut Events) {
        let pixels: Vec<i64> = (0..self.pixels).collect();
        for channel in (0..self.co).step_by(2) {
            let count = (self.co - channel).min(2);
            // The last channel alone takes pixel by pixel.
            for block in pixels.chunks(count as usize) {
                block
                    .iter()
                    .for_each(|p| events.read(self.read + p * self.step, self.length));
                for p in block {
                    events.write(self.write + p * self.co + channel, count);
                }
            }
        }
    }

    /// Four pixels outermost, read for each output channel; single ones are written four channels at a time.
    pub fn vectors(&self, events: &mut Events) {
        self.blocks(events, 4, 4);
    }

    pub fn blocks(&self, events: &mut Events, size: i64, last: i64) {
        let full = self.pixels / size * size;
        for first in (0..full).step_by(size as usize) {
            for channel in 0..self.co {
                for p in first..first + size {
                    events.read(self.read + p * self.step, self.length);
                }
                for p in first..first + size {
                    events.write(self.write + p * self.co + channel, 1);
                }
            }
        }
        for p in full..self.pixels {
            for channel in (0..self.co).step_by(last as usize) {
                events.read(self.read + p * self.step, self.length);
                let count = last.min(self.co - channel);
                events.write(self.write + p * self.co + channel, count);
            }
        }
    }

    pub fn on(&self, library: Library, events: &mut Events) {
        match library {
            Library::CmsisNn(Core::Mve) => self.vectors(events),
            _ => self.scalar(events),
        }
    }
}

/// What a core with vectors makes of a row convolution.
pub enum Row {
    /// Straight from the input.
    Direct(Events),
    /// As any other convolution.
    General,
    /// It fails, or reads what is not the row's.
    Wrong,
}

pub fn row(w: &Window) -> Row {
    let ([_, out], [_, pad]) = w.output().unwrap();
    let stride = w.stride[1];
    let total = (out - 1) * stride + w.kw - w.w;
    let ceil = |n: i64| match n {
        0 => 0,
        _ => 1.max((n + stride - 1) / stride),
    };
    let (left, right) = (ceil(pad), ceil(pad + total % 2));
    let middle = out - left - right;
    if middle < 0 {
        return Row::General;
    }
    if total < 0 {
        return Row::Wrong;
    }
    let mut events = Events::default();
    for batch in 0..w.n {
        let (read, write) = (batch * w.w * w.ci, batch * out * w.co);
        if left > 0 {
            events.read(read, w.kw * w.ci);
            events.write(write, left * w.co);
        }
        let start = stride * left - pad;
        Product {
            read: read + start * w.ci,
            step: stride * w.ci,
            length: w.kw * w.ci,
            write: write + left * w.co,
            pixels: middle,
            co: w.co,
        }
        .vectors(&mut events);
        let start = stride * (left + middle) - pad;
        if right > 0 {
            events.read(read + start * w.ci, (w.kw - 1) * w.ci);
            events.write(write + (left + middle) * w.co, right * w.co);
        }
        let end = (batch + 1) * w.w * w.ci;
        if events.0.iter().any(|&(write, _, to)| !write && to > end) {
            return Row::Wrong;
        }
    }
    Row::Direct(events)
}
