//! The answers of NVIDIA's libraries, including those to deliberately wrong calls, one line each: `cublas: a leading
//! dimension that is too small: 7`.
//!
//! The stand-ins of the tests (`tests/fake_cuda`) must give the same answers. The stand-ins' answers are stored in
//! `tests/card/answers.txt`, so that a visit to a card shows where it differs. Only calls that cannot crash the program
//! are included.

mod ffi;
mod of_cublas;
mod of_cudnn;
mod of_driver;
mod of_nvrtc;

use clap::ValueEnum;
use labs::stdio::to_stdout;
use todevice::cuda::{Finding, probe};

#[derive(Clone, Copy, ValueEnum)]
pub enum Library {
    Driver,
    Nvrtc,
    Cublas,
    Cudnn,
}

/// Prints the answers of a library, each as soon as it is available.
pub fn print(library: Library) -> Result<(), String> {
    let probe = probe();
    let found = |finding: &Finding| match finding {
        Finding::Found { version, .. } => Ok(version.clone()),
        Finding::Missing { reason } => Err(reason.clone()),
    };
    // All queries need a context.
    found(&probe.driver)?;
    let driver = ffi::Loaded::open("driver", &["libcuda.so.1"])?;
    let context = of_driver::Context::new(&driver)?;
    // Libraries that the probe has loaded are found by name.
    match library {
        Library::Driver => of_driver::ask(&driver, &context),
        Library::Nvrtc => {
            found(&probe.nvrtc)?;
            let nvrtc = ffi::Loaded::open("nvrtc", &["libnvrtc.so.13", "libnvrtc.so.12"])?;
            of_nvrtc::ask(&nvrtc, &driver);
        }
        Library::Cublas => {
            say("cublas", "the version of its file", &found(&probe.cublas)?);
            let cublas = ffi::Loaded::open("cublas", &["libcublas.so.13", "libcublas.so.12"])?;
            of_cublas::ask(&cublas, &context);
        }
        Library::Cudnn => {
            found(&probe.cudnn)?;
            of_cudnn::ask(&ffi::Loaded::open("cudnn", &["libcudnn.so.9"])?);
        }
    }
    Ok(())
}

/// Prints a line of the answers.
fn say(library: &str, question: &str, answer: &str) {
    let answer = answer.trim().replace('\n', " / ");
    to_stdout(&format!("{library}: {question}: {answer}\n"));
}
