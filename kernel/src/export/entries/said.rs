//! What the user said: as it was typed.

use pliant_sdk::message::UserMessage;

use super::Told;
use super::block::{self, Texts};
use crate::export::markup::Html;

pub(super) fn user(out: &mut Html, told: &Told<'_>, message: &UserMessage) {
    told.open(out, "user", "User");
    block::content(out, &message.content, Texts::Plain);
    told.close(out);
}
