//! Which points of a sweep are smaller than others.

use super::{Axis, Point};

/// Places of the points that were run, the smallest first: by limit, then by the other axes in
/// their order; by size where values have one, else as they were given.
pub(super) fn by_size(over: &[Axis], points: &[Point]) -> Vec<usize> {
    let sizes: Vec<Vec<f64>> = points.iter().map(|point| sizes(over, point)).collect();
    let mut order: Vec<usize> = (0..points.len()).collect();
    order.retain(|&i| points[i].refused.is_none());
    order.sort_by(|&a, &b| {
        let each = sizes[a].iter().zip(&sizes[b]).map(|(a, b)| a.total_cmp(b));
        each.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then)
    });
    order
}

/// How large a point is, by limit, then by the other axes.
pub(super) fn sizes(over: &[Axis], point: &Point) -> Vec<f64> {
    let mut axes: Vec<usize> = (0..over.len()).collect();
    axes.sort_by_key(|&i| !over[i].name.ends_with("cpu.max"));
    let size = |axis: usize| {
        let value = &point.values[axis];
        let place = over[axis].values.iter().position(|v| v == value);
        let place = place.unwrap_or(0);
        let sizes = over[axis].sizes.as_ref();
        let size = sizes.map(|sizes| sizes.get(place).copied().flatten());
        size.map_or(place as f64, |size| size.unwrap_or(f64::INFINITY))
    };
    axes.into_iter().map(size).collect()
}
