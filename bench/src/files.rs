//! Where reports go.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use crate::args::Args;
use crate::report::{Report, csv, html, markdown};

/// What is written when nobody says where.
pub(crate) const FOLDER: &str = "bookstore-compare";

/// How a report is written as text.
pub(crate) type Form = fn(&Report) -> anyhow::Result<String>;

/// Where each form of the report goes.
pub(crate) fn outputs(args: &Args) -> [(PathBuf, Form); 4] {
    let or = |path: &Option<PathBuf>, name| path.clone().unwrap_or_else(|| Path::new(FOLDER).join(name));
    [
        (or(&args.json, "report.json"), |report| Ok(serde_json::to_string_pretty(report)? + "\n")),
        (or(&args.markdown, "report.md"), |report| Ok(markdown::render(report))),
        (or(&args.csv, "report.csv"), |report| Ok(csv::render(report))),
        (or(&args.html, "report.html"), |report| Ok(html::render(report))),
    ]
}

/// Makes the folder of a file to write. It's a pity to learn only after minutes that this can't be.
pub(crate) fn make_folder(path: &Path) -> anyhow::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).with_context(|| format!("can't make {}", folder.display()))?;
    if path.is_dir() {
        bail!("{} is a folder", path.display());
    }
    rustix::fs::access(if path.exists() { path } else { folder }, rustix::fs::Access::WRITE_OK)
        .with_context(|| format!("can't write {}", path.display()))
}

/// Writes a file.
pub(crate) fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    make_folder(path)?;
    std::fs::write(path, text).with_context(|| format!("can't write {}", path.display()))
}
