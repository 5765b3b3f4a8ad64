//! The choices in the last act where nobody types: each is about some lines of `fit`.

use crate::Edit;

/// The subject of each choice, and its options as edits of the reference's `fit`. The first option leaves it as it is.
pub static PLACES: &[(&str, &[&[Edit]])] = &[
    (
        "The steps",
        &[
            &[],
            &[("lr = 0.02 / numbers().clip", "lr = 0.1"), ("batch_size: 8", "batch_size: 64")],
            &[
                ("lr = 0.02 / numbers().clip", "lr = 0.25 / numbers().clip"),
                ("SGDOptions { lr, momentum: 0.9,", "SGDOptions { lr, momentum: 0.5,"),
                ("batch_size: 8", "batch_size: 128"),
            ],
        ],
    ),
    ("The scale of each row", &[&[], &[(SCALED, SCALED_ONCE)], &[(SCALED, LOOP)]]),
    ("An epoch", &[&[], &[(READ, UNREAD)], &[(READ, ON_THE_DEVICE)]]),
    (
        "The best weights",
        &[
            &[],
            &[
                ("    let mut best = (0.0, StateDict::default());\n", ""),
                (
                    "        let [right, _] = evaluate(&model, &rows, device)?;\n        keep_best(&mut best, right, &model)?;\n",
                    "",
                ),
                ("    model.load_state_dict(&best.1, true)?;\n", ""),
            ],
        ],
    ),
];

const LOOP: &str = "    for _epoch in 0..3 {\n";

const SCALED: &str = "    for _epoch in 0..3 {
        let mut scaled = Vec::new();
        for row in x.split(1, 0)? {
            let centered = (&row - row.mean()?)?;
            scaled.push((&centered / centered.square()?.mean()?.sqrt()?)?);
        }
        let x = Tensor::cat(&scaled, 0)?;
";

const SCALED_ONCE: &str = "    let centered = (x - x.mean_dims(&[1], true)?)?;
    let x = (&centered / centered.square()?.mean_dims(&[1], true)?.sqrt()?)?;
    for _epoch in 0..3 {
";

const READ: &str = "        train(&model, &mut optimizer, &mut scaler, &rows, &weights, device)?.item()?;\n";

const UNREAD: &str = "        train(&model, &mut optimizer, &mut scaler, &rows, &weights, device)?;\n";

const ON_THE_DEVICE: &str = "        let (x, y) = (x.to(device)?, y.to(device)?);
        for (x, y) in x.split(64, 0)?.iter().zip(y.split(64, 0)?) {
            let loss = model.forward(x)?.cross_entropy(&y)?;
            optimizer.zero_grad();
            loss.backward()?;
            optimizer.step()?;
        }
";
