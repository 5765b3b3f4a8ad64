//! Amounts in reports.

pub fn bytes(count: u64) -> String {
    format!("{} byte{}", thousands(count), if count == 1 { "" } else { "s" })
}

pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
