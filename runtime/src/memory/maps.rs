//! Functions of elements, over whole views.
//!
//! All of them go through the elements in order, and write each after they have read what belongs to it.

use super::{Element, View, ViewMut, load, store};

impl<T: Element> View<'_, T> {
    /// The elements from `start` on; none of them if there are fewer.
    #[inline(always)]
    pub fn skip(self, start: usize) -> Self {
        let left = self.len.saturating_sub(start);
        self.part(self.len - left, left).unwrap_or_default()
    }

    /// Whether the view has an element after `len - 1` steps of `step` from its start.
    #[inline(always)]
    fn reaches(self, len: usize, step: usize) -> bool {
        match len.checked_sub(1) {
            Some(steps) => steps.checked_mul(step).is_some_and(|last| last < self.len),
            None => true,
        }
    }
}

impl<T: Element> ViewMut<'_, T> {
    /// Writes `f` of each element of `from`, for as many elements as both have.
    #[inline(always)]
    pub fn map<A: Element>(self, from: View<'_, A>, f: impl Fn(A) -> T) {
        for index in 0..self.len.min(from.len) {
            // SAFETY: within both views; what is written may be written for their lifetime.
            unsafe { store(self.start.add(index), f(load(from.start.add(index)))) }
        }
    }

    /// Writes `f` of an element of `a` and one of `b` to each element, and goes on by a step in both: 1, or 0 for an element
    /// that is read again. Nothing happens if `a` or `b` is too short.
    #[inline(always)]
    pub fn zip<A: Element, B: Element>(
        self,
        (a, step_a): (View<'_, A>, usize),
        (b, step_b): (View<'_, B>, usize),
        f: impl Fn(A, B) -> T,
    ) {
        if !a.reaches(self.len, step_a) || !b.reaches(self.len, step_b) {
            return;
        }
        let all = |step_a: usize, step_b: usize| {
            for index in 0..self.len {
                // SAFETY: the last step ends within the views, as was just seen; what is written may be written.
                unsafe {
                    let x = load(a.start.add(index * step_a));
                    let y = load(b.start.add(index * step_b));
                    store(self.start.add(index), f(x, y));
                }
            }
        };
        // Hosts have the room for a loop of its own, and vectors to go through it with.
        match cfg!(target_pointer_width = "64") && step_a == 1 && step_b == 1 {
            true => all(1, 1),
            false => all(step_a, step_b),
        }
    }

    /// Writes an element of `x` where the condition is not 0, and of `y` where it is, and goes on as [`zip`](Self::zip) does.
    #[inline(always)]
    pub fn select(
        self,
        (condition, step): (View<'_, u8>, usize),
        (x, step_x): (View<'_, T>, usize),
        (y, step_y): (View<'_, T>, usize),
    ) {
        let len = self.len;
        if !condition.reaches(len, step) || !x.reaches(len, step_x) || !y.reaches(len, step_y) {
            return;
        }
        for index in 0..len {
            // SAFETY: as in `zip`.
            unsafe {
                let of_x = load(x.start.add(index * step_x));
                let of_y = load(y.start.add(index * step_y));
                let chosen = match load(condition.start.add(index * step)) {
                    0 => of_y,
                    _ => of_x,
                };
                store(self.start.add(index), chosen);
            }
        }
    }
}
