use super::*;
use crate::BufferId;
use crate::Conflict;
use crate::search::Random;

fn buffers(table: &Table) -> Vec<Buffer> {
    table.problem.buffers().map(|(_, b)| *b).collect()
}

fn conflicts(table: &Table) -> Vec<(u32, u32, i64, i64)> {
    let one = |(a, b, c): (BufferId, BufferId, &Conflict)| (a.0, b.0, c.a_below_b, c.b_below_a);
    table.problem.conflicts().map(one).collect()
}

fn message(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

#[test]
fn the_example_of_minimalloc() {
    let text = "id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\nb3,0,9,4\n";
    let table = parse(text).unwrap();
    let expected =
        [(0, 2), (3, 8), (0, 8)].map(|(first, last)| Buffer::new(4, Lifetime::new(first, last)));
    assert_eq!(buffers(&table), expected);
    assert!(table.ids().eq(["b1", "b2", "b3"]));
    assert_eq!((table.live_bytes, table.problem.liveness_bound()), (8, 8));
    assert_eq!(table.problem.conflict_count(), 2, "b1 ends where b2 starts");
}

#[test]
fn other_names_and_columns() {
    let text = "\u{feff}size, begin ,upper,buffer_id,alignment,offset,hint\r\n\
                16,-2,0,x,8,,-1\r\n\r\n4,1,2,y,,32,12";
    let table = parse(text).unwrap();
    let first = Buffer {
        align: 8,
        ..Buffer::new(16, Lifetime::new(-2, -1))
    };
    let second = Buffer {
        fixed: Some(32),
        ..Buffer::new(4, Lifetime::new(1, 1))
    };
    assert_eq!(buffers(&table), [first, second]);
    let again = parse(&write(&table.problem)).unwrap();
    assert_eq!(buffers(&again), buffers(&table));
}

#[test]
fn end_is_the_last_point_in_time() {
    let ends = parse("buffer,start,end,size,gaps\na,0,9,4,2-3 5-5@1:2\nb,9,9,4,\n").unwrap();
    let uppers = parse("id,lower,upper,size,gaps\na,0,10,4,2-4 5-6@1:2\nb,9,10,4,\n").unwrap();
    assert_eq!(buffers(&ends), buffers(&uppers));
    assert_eq!(buffers(&ends)[1].lifetime, Lifetime::new(9, 9));
    assert_eq!(conflicts(&ends), [(0, 1, 4, 4)]);
    assert_eq!(conflicts(&ends), conflicts(&uppers));
}

#[test]
fn gaps_and_windows() {
    // a uses nothing from 2 to 3 and its bytes 4..8 from 6 to 7.
    let row = |b: &str| format!("id,lower,upper,size,gaps\na,0,10,8,2-4 6-8@4:8\nb,{b}\n");
    let of = |b: &str| conflicts(&parse(&row(b)).unwrap());
    assert_eq!(of("2,4,3,"), [], "inside of a gap");
    assert_eq!(of("1,4,3,"), [(0, 1, 8, 3)], "a is there at 1");
    assert_eq!(of("2,5,3,4-5"), [], "gaps that take turns");
    assert_eq!(of("6,8,3,"), [(0, 1, 8, -1)], "b fits below a's part");
    assert_eq!(of("6,8,3,6-8@1:2"), [(0, 1, 7, -2)], "b's part starts at 1");
    assert_eq!(of("6,9,3,"), [(0, 1, 8, 3)], "at 8 all of a is in use");
    let live = |b: &str| parse(&row(b)).unwrap().live_bytes;
    assert_eq!(
        [live("2,4,3,"), live("6,8,7,"), live("6,9,7,")],
        [8, 11, 15]
    );
    // Lifetimes are from the first to the last use.
    let edges = parse("id,lower,upper,size,gaps\na,0,9,1,7-9 0-2\nb,5,6,1,5-6\n").unwrap();
    assert_eq!(buffers(&edges)[0].lifetime, Lifetime::new(2, 6));
    assert_eq!(conflicts(&edges), [], "b is never in use");
}

#[test]
fn windows_that_stay_apart() {
    let table = |gaps: &str| {
        let text = format!("id,lower,upper,size,gaps\na,0,4,8,0-4@0:3\nb,0,4,9,{gaps}\n");
        parse(&text).unwrap()
    };
    let solved = |table: &Table, capacity| {
        let solution = table.solve(Planner::Auto, capacity, &Limits::default());
        let solution = solution.unwrap();
        (solution.placement.height, solution.lower_bound)
    };
    let touch = table("0-4@3:9");
    assert_eq!(conflicts(&touch), [(0, 1, 0, 9)]);
    assert_eq!(solved(&touch, None), (9, 9));
    let once = table("0-3@5:9");
    assert_eq!(
        conflicts(&once),
        [(0, 1, 3, 9)],
        "b starts with byte 0 at 3"
    );
    assert_eq!(solved(&once, None), (12, 12), "3 bytes and all of b at 3");

    // a, which ends with byte 2, may start 2 bytes above b, which starts with byte 5.
    let apart = table("0-4@5:9");
    assert_eq!(conflicts(&apart), [(0, 1, -2, 9)]);
    assert_eq!(solved(&apart, None), (9, 9));

    // Where a is fixed at 2, b may be at 0.
    let text = "id,lower,upper,size,gaps,offset\nb,0,4,9,0-4@5:9,\na,0,4,8,0-4@0:3,2\n";
    let fixed = parse(text).unwrap();
    assert_eq!(solved(&fixed, None), (10, 10));
    let higher = parse(&text.replace(",2\n", ",3\n")).unwrap();
    assert_eq!(
        solved(&higher, None),
        (11, 11),
        "b at 1, and a ends above it"
    );
    let both = parse(&text.replace("5:9,", "5:9,0")).unwrap();
    assert_eq!(solved(&both, None), (10, 10));
    let wrong = parse(&text.replace("5:9,", "4:9,0")).unwrap();
    let error = wrong.solve(Planner::Auto, None, &Limits::default());
    assert_eq!(
        error.unwrap_err().to_string(),
        "lines 2 and 3: \"b\" and \"a\" are fixed at offsets where they overlap"
    );
}

#[test]
fn a_capacity_ends_the_search() {
    // TFLM's placement, which is tried first, takes 5,696 bytes; the best one 4,096.
    let table = parse(include_str!("../../../testdata/problems/block.csv")).unwrap();
    let solve = |capacity| {
        let solution = table.solve(Planner::Auto, capacity, &Limits::default());
        let solution = solution.unwrap();
        (
            solution.placement.height,
            solution.fits(capacity.unwrap_or(0)),
        )
    };
    assert_eq!(solve(None).0, 4096);
    assert_eq!(solve(Some(4096)), (4096, Some(true)));
    assert_eq!(solve(Some(5696)), (5696, Some(true)));
    assert_eq!(solve(Some(u64::MAX)), (5696, Some(true)));
    // What is proven not to fit is not searched for.
    assert_eq!(solve(Some(4095)), (5696, Some(false)));
    assert_eq!(solve(Some(0)), (5696, Some(false)));
}

#[test]
fn any_times_of_64_bits() {
    let [least, most] = [i64::MIN, i64::MAX];
    let text = format!(
        "id,start,end,size,gaps\na,{least},{most},1,{least}-{least} 5-{most}\n\
         b,{most},{most},2,\nc,{least},{least},4,\nd,-1,5,8,5-5@2:3\n"
    );
    let table = parse(&text).unwrap();
    assert_eq!(conflicts(&table), [(0, 3, 1, 8)]);
    let lifetimes: Vec<Lifetime> = buffers(&table).iter().map(|b| b.lifetime).collect();
    // Starts and ends: least, least + 1, -1, 5, 6, most, most + 1.
    let expected = [(1, 2), (5, 5), (0, 0), (2, 3)];
    assert_eq!(lifetimes, expected.map(|(a, b)| Lifetime::new(a, b)));
    // Those that fit stay as they are, up to the last one.
    let short = parse("id,lower,upper,size\na,-2147483648,2147483648,1\n").unwrap();
    let all = Lifetime::new(i32::MIN, i32::MAX);
    assert_eq!(buffers(&short)[0].lifetime, all);
    assert_eq!(
        message(&format!("id,lower,upper,size\na,{least},{least},1\n")),
        format!(
            "line 2, column upper: found \"{least}\", expected a point in time after {least}, \
             where the lifetime starts"
        )
    );
}

#[test]
fn everything_is_written_again() {
    let text = "size,hint,start,end,gaps,buffer,alignment\n16,-1,-5,9,-3--1 0-4@2:8,first one,4\n\
                4,7,0,0,,ü,1\n";
    let table = parse(text).unwrap();
    let placement = Placement {
        offsets: vec![4, 0],
        height: 20,
    };
    let written = table.with_offsets(&placement);
    assert_eq!(
        written,
        "size,hint,start,end,gaps,buffer,alignment,offset\n\
         16,-1,-5,9,-3--1 0-4@2:8,first one,4,4\n4,7,0,0,,ü,1,0\n"
    );
    let again = parse(&written).unwrap();
    assert!(again.is_same_problem(&table) && table.is_same_problem(&again));
    assert_eq!(conflicts(&again), conflicts(&table));
    let fixed = |(b, offset): (Buffer, u64)| Buffer {
        fixed: Some(offset),
        ..b
    };
    let expected: Vec<Buffer> = buffers(&table).into_iter().zip([4, 0]).map(fixed).collect();
    assert_eq!(buffers(&again), expected);
    assert_eq!(again.with_offsets(&placement), written);

    // What MiniMalloc cannot read is made readable; an offset column stays where it is.
    let untidy = "\u{feff}id , offset,lower,upper,size,alignment,hint\r\n\r\n\
                  a,, 0 ,1,8,,\r\nb,24,0,1,8,8,5";
    let table = parse(untidy).unwrap();
    let placement = Placement {
        offsets: vec![0, 24],
        height: 32,
    };
    assert_eq!(
        table.with_offsets(&placement),
        "id,offset,lower,upper,size,alignment,hint\na,0,0,1,8,1,-1\nb,24,0,1,8,8,5\n"
    );
    let other = parse("id,lower,upper,size,alignment,hint\na,0,1,8,1,-1\nb,0,1,8,8,5").unwrap();
    assert!(table.is_same_problem(&other));
    let other = parse("id,lower,upper,size,alignment,hint\na,0,1,8,1,-1\nb,0,1,8,8,6").unwrap();
    assert!(!table.is_same_problem(&other));
}

#[test]
fn headers_that_are_none() {
    assert_eq!(
        message(" \r\n\n"),
        "line 1: no header, expected columns like id,lower,upper,size"
    );
    assert_eq!(
        message("\nid,lower,size,alignment"),
        "line 2: there is no column upper or end"
    );
    assert_eq!(
        message("lower,upper,size"),
        "line 1: there is no column id or buffer or buffer_id"
    );
    assert_eq!(
        message("id,lower,upper,size,aligment"),
        "line 1: the column \"aligment\" is not known, expected some of id, buffer, buffer_id, \
         lower, begin, start, upper, end, size, alignment, hint, gaps, offset"
    );
    assert_eq!(
        message("id,lower,upper,size,size"),
        "line 1: the columns size and size hold the same, expected one of them"
    );
    assert_eq!(
        message("id,lower,upper,end,size"),
        "line 1: the columns upper and end hold the same, expected one of them"
    );
}

#[test]
fn rows_that_are_none() {
    const BYTES: &str = "expected bytes, from 0 to 2^61";
    const TIME: &str = "expected a point in time, a number of 64 bits";
    let header = "id,begin,upper,size,alignment,hint,gaps,offset";
    for (row, expected) in [
        ("b,0,1", "line 4: 3 cells, expected 8 as in the header"),
        ("b", "line 4: 1 cell, expected 8 as in the header"),
        (
            "b,0,1,1,,,,,",
            "line 4: 9 cells, expected 8 as in the header",
        ),
        ("a,5,6,1,,,,", "line 4: the id \"a\" is that of line 3 too"),
        (
            ",0,1,1,,,,",
            "line 4, column id: found \"\", expected a name",
        ),
        (
            "b,,1,1,,,,",
            &format!("line 4, column begin: found \"\", {TIME}"),
        ),
        (
            "b,0,x,1,,,,",
            &format!("line 4, column upper: found \"x\", {TIME}"),
        ),
        (
            "b,0,9223372036854775808,1,,,,",
            &format!("line 4, column upper: found \"9223372036854775808\", {TIME}"),
        ),
        (
            "b,5,5,1,,,,",
            "line 4, column upper: found \"5\", expected a point in time after 5, where the \
             lifetime starts",
        ),
        (
            "b,0,1,,,,,",
            &format!("line 4, column size: found \"\", {BYTES}"),
        ),
        (
            "b,0,1,-1,,,,",
            &format!("line 4, column size: found \"-1\", {BYTES}"),
        ),
        (
            "b,0,1,1.5,,,,",
            &format!("line 4, column size: found \"1.5\", {BYTES}"),
        ),
        (
            "b,0,1,9223372036854775807,,,,",
            &format!("line 4, column size: found \"9223372036854775807\", {BYTES}"),
        ),
        (
            "b,0,1,99999999999999999999,,,,",
            &format!("line 4, column size: found \"99999999999999999999\", {BYTES}"),
        ),
        (
            "b,0,1,2305843009213693952,,,,",
            "line 4: with \"b\" the sizes, alignments and offsets add up to more than \
             2305843009213693952 bytes",
        ),
        (
            "b,0,1,1,0,,,",
            "line 4, column alignment: found \"0\", expected bytes, from 1 to 2^61",
        ),
        (
            "b,0,1,1,,first,,",
            "line 4, column hint: found \"first\", expected an offset, or a negative number \
             for none",
        ),
        (
            "b,0,1,1,,,,-1",
            &format!("line 4, column offset: found \"-1\", {BYTES}"),
        ),
    ] {
        assert_eq!(
            message(&format!("{header}\n\na,0,1,1,,,,\n{row}\n")),
            expected
        );
    }
}

#[test]
fn gaps_that_are_none() {
    const FORM: &str = "a gap, lower-upper or lower-upper@bottom:top";
    const INSIDE: &str = "a gap inside the lifetime";
    const APART: &str = "a gap that overlaps no other one";
    const WINDOW: &str = "a window of some of the 18 bytes";
    for (gaps, found, expected) in [
        ("7", "7", FORM),
        ("-7", "-7", FORM),
        ("7-8-9", "7-8-9", FORM),
        ("A-B", "A-B", FORM),
        ("7-8@", "7-8@", FORM),
        ("7-8@1", "7-8@1", FORM),
        ("7-8@1:2:3", "7-8@1:2:3", FORM),
        ("7-8@-1:2", "7-8@-1:2", FORM),
        ("7-8 9-99999999999999999999", "9-99999999999999999999", FORM),
        ("9-9", "9-9", "a gap that ends after it starts"),
        ("5-7", "5-7", INSIDE),
        ("-7-8", "-7-8", INSIDE),
        ("7-8 11-13", "11-13", INSIDE),
        ("9-11 7-10", "9-11", APART),
        ("7-8 7-8@1:2", "7-8@1:2", APART),
        ("7-8@2:2", "7-8@2:2", WINDOW),
        ("7-8@2:19", "7-8@2:19", WINDOW),
    ] {
        let text = format!("id,lower,upper,size,gaps\na,6,12,18,{gaps}\n");
        let expected = format!("line 2, column gaps: found {found:?}, expected {expected}");
        assert_eq!(message(&text), expected);
    }
    let most = i64::MAX;
    let text = format!("id,lower,upper,size,gaps\na,0,{most},8,{most}-{most}\n");
    assert!(message(&text).ends_with("a gap that ends after it starts"));
    let text = format!("id,lower,end,size,gaps\na,0,{most},8,{most}-{most}\n");
    assert_eq!(buffers(&parse(&text).unwrap())[0].lifetime.last, 0);
}

#[test]
fn errors_of_the_solver_name_lines() {
    let text = "id,lower,upper,size,alignment,offset\n\na,0,4,8,8,4\nb,0,9,8,1,8\nc,5,6,8,1,1\n";
    let table = parse(text).unwrap();
    let located = |table: &Table| {
        let solution = table.solve(Planner::Auto, None, &Limits::default());
        solution.unwrap_err().to_string()
    };
    assert_eq!(
        located(&table),
        "line 3: \"a\" is fixed at offset 4, which is no multiple of its alignment 8"
    );
    let table = parse(&text.replace("8,8,4", "8,8,0")).unwrap();
    assert_eq!(
        located(&table),
        "lines 4 and 5: \"b\" and \"c\" are fixed at offsets where they overlap"
    );
    let rows: String = (0..4200).map(|i| format!("{i},0,1,1\n")).collect();
    assert_eq!(
        message(&format!("id,lower,upper,size\n{rows}")),
        "8817900 conflicts between buffers, more than the 8388608 that fit in memory"
    );
}

#[test]
fn long_cells_do_not_fill_the_screen() {
    let long = "é".repeat(1 << 20);
    for text in [
        long.clone(),
        format!("id,lower,upper,size\n{long}"),
        format!("id,lower,upper,size\na,0,1,{long}"),
        format!("id,lower,upper,size\n{long},0,1,1\n{long},0,1,1"),
        ",".repeat(1 << 20),
        format!("id,lower,upper,size\n{}", ",".repeat(1 << 20)),
        format!(
            "id,lower,upper,size,gaps\na,0,9,1,{}",
            "1-2 ".repeat(1 << 18)
        ),
    ] {
        assert!(message(&text).len() < 300);
    }
}

/// The bytes of a row in use at each time from 0 to 7: bottom and top.
type Use = [Option<(i64, i64)>; 8];

/// A random row, and what it uses.
fn random_row(random: &mut Random, id: usize) -> (String, Use) {
    let lower = random.below(8);
    let upper = lower + 1 + random.below(8 - lower);
    let size = 1 + random.below(6) as i64;
    let mut used: Use = [None; 8];
    used[lower..upper].fill(Some((0, size)));
    let (mut gaps, mut time) = (Vec::new(), lower);
    while time < upper {
        let next = time + 1 + random.below(upper - time);
        match random.below(4) {
            0 => {
                used[time..next].fill(None);
                gaps.push(format!("{time}-{next}"));
            }
            1 => {
                let bottom = random.below(size as usize) as i64;
                let top = bottom + 1 + random.below((size - bottom) as usize) as i64;
                used[time..next].fill(Some((bottom, top)));
                gaps.push(format!("{time}-{next}@{bottom}:{top}"));
            }
            _ => {}
        }
        time = next;
    }
    if random.below(2) == 0 {
        gaps.reverse();
    }
    let gaps = gaps.join(" ");
    (format!("{id},{lower},{upper},{size},{gaps}\n"), used)
}

/// How far two rows must keep apart, by a look at each point in time.
fn needs(rows: &[(String, Use)]) -> Vec<(usize, usize, i64, i64)> {
    let mut needs = Vec::new();
    for (a, (_, used_a)) in rows.iter().enumerate() {
        for (b, (_, used_b)) in rows.iter().enumerate().skip(a + 1) {
            let both = (0..8).filter_map(|t| used_a[t].zip(used_b[t]));
            let apart = both.map(|(a, b)| (a.1 - b.0, b.1 - a.0));
            let most = apart.reduce(|x, y| (x.0.max(y.0), x.1.max(y.1)));
            needs.extend(most.map(|(below, above)| (a, b, below, above)));
        }
    }
    needs
}

/// Whether some offsets fit into `height`: all are tried.
fn fits(
    height: i64,
    sizes: &[i64],
    needs: &[(usize, usize, i64, i64)],
    offsets: &mut Vec<i64>,
) -> bool {
    let Some(&size) = sizes.get(offsets.len()) else {
        return true;
    };
    (0..=height - size).any(|offset| {
        offsets.push(offset);
        let last = offsets.len() - 1;
        let allowed = needs.iter().all(|&(a, b, below, above)| {
            b != last || offsets[a] + below <= offset || offset + above <= offsets[a]
        });
        let found = allowed && fits(height, sizes, needs, offsets);
        offsets.pop();
        found
    })
}

/// No byte is used by two rows at one time.
fn assert_apart(rows: &[(String, Use)], placement: &Placement) {
    for t in 0..8 {
        let mut owners = vec![None; placement.height as usize];
        for (id, (row, used)) in rows.iter().enumerate() {
            let (bottom, top) = used[t].unwrap_or((0, 0));
            for byte in bottom..top {
                let at = (placement.offsets[id] as i64 + byte) as usize;
                assert_eq!(owners[at].replace(id), None, "byte {at} at {t}: {row}");
            }
        }
    }
}

#[test]
fn random_gaps_point_by_point() {
    let (mut proven, mut signed, mut windows) = (0, 0, 0);
    for seed in 0..3000 {
        let mut random = Random::new(seed);
        let count = 2 + seed as usize % 4;
        let rows: Vec<(String, Use)> = (0..count).map(|id| random_row(&mut random, id)).collect();
        let text: String = rows.iter().map(|(row, _)| row.as_str()).collect();
        let text = format!("id,lower,upper,size,gaps\n{text}");
        let table = parse(&text).unwrap();
        let sizes: Vec<i64> = buffers(&table).iter().map(|b| b.size as i64).collect();

        for ((_, used), buffer) in rows.iter().zip(buffers(&table)) {
            let first = used.iter().position(Option::is_some).unwrap_or(0);
            let last = used.iter().rposition(Option::is_some).unwrap_or(0);
            let expected = Lifetime::new(first as i32, last as i32);
            assert_eq!(buffer.lifetime, expected, "{text}");
        }

        let needs = needs(&rows);
        let mut found = conflicts(&table);
        for conflict in found.iter_mut().filter(|c| c.0 > c.1) {
            *conflict = (conflict.1, conflict.0, conflict.3, conflict.2);
        }
        found.sort_unstable();
        let expected = needs
            .iter()
            .map(|&(a, b, below, above)| (a as u32, b as u32, below, above));
        assert_eq!(found, expected.collect::<Vec<_>>(), "{text}");
        let negative = needs.iter().filter(|n| n.2 < 0 || n.3 < 0).count();
        signed += usize::from(negative > 0);
        windows += needs.iter().filter(|n| n.2 < sizes[n.0]).count();

        let live = |t: usize| rows.iter().filter_map(move |(_, used)| used[t]);
        let live = (0..8).map(|t| live(t).map(|(bottom, top)| top - bottom).sum());
        let live = live.chain(sizes.iter().copied()).max();
        assert_eq!(Some(table.live_bytes as i64), live, "{text}");

        for &planner in Planner::ALL {
            let limits = Limits::default().with_nodes(100);
            let solution = table.solve(planner, None, &limits).unwrap();
            let height = solution.placement.height;
            assert!(solution.lower_bound >= table.live_bytes && solution.lower_bound <= height);
            assert_apart(&rows, &solution.placement);
            let below = solution.lower_bound as i64 - 1;
            assert!(
                count > 3 || !fits(below, &sizes, &needs, &mut Vec::new()),
                "{planner} says that nothing fits into {below}\n{text}"
            );
            proven += usize::from(planner == Planner::Auto && solution.optimal());
        }
    }
    assert!(
        proven > 2900 && signed > 200 && windows > 500,
        "{proven} proven, {signed} with negative separations, {windows} windows"
    );
}

/// Changed bytes make an error or another problem, never a panic.
#[test]
fn ten_thousand_changes() {
    let rows = "b1,0,9,16,8,0,1-3 5-7@4:12,64\nb2,2,9,4,1,-1,,\nb3,-5,4,32,16,7,0-3@0:16,\n";
    let files = [
        format!("id,lower,upper,size,alignment,hint,gaps,offset\n{rows}"),
        format!("buffer,start,end,size,alignment,hint,gaps,offset\r\n\r\n{rows}"),
    ];
    let limits = Limits::default().with_nodes(10);
    let (mut solved, mut refused) = (0, 0);
    for seed in 0..10_000 {
        let mut random = Random::new(seed);
        let mut bytes = files[random.below(2)].clone().into_bytes();
        for _ in 0..=random.below(3) {
            // The header, which takes half of the text, is changed now and then.
            let from = if random.below(8) > 0 { 50 } else { 0 };
            let at = from + random.below(bytes.len() - from);
            match random.below(4) {
                0 => drop(bytes.remove(at)),
                1 => bytes[at] = b"0123456789-,:@ \n"[random.below(16)],
                2 => bytes.insert(at, b'9'),
                _ => bytes[at] ^= 1 << random.below(7),
            }
        }
        let text = String::from_utf8(bytes).unwrap();
        let solution = parse(&text).and_then(|table| {
            let solution = table.solve(Planner::Auto, None, &limits)?;
            Ok((table, solution))
        });
        let Ok((table, solution)) = solution else {
            refused += 1;
            continue;
        };
        let again = parse(&table.with_offsets(&solution.placement)).unwrap();
        assert!(again.is_same_problem(&table), "{text}");
        let fixed = again.solve(Planner::Auto, None, &limits).unwrap();
        assert_eq!(fixed.placement, solution.placement, "{text}");
        solved += 1;
    }
    assert!(
        solved > 1000 && refused > 1000,
        "{solved} solved, {refused} refused"
    );
}
