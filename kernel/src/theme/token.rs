//! The parts of the interface that have a colour (`tui.md` R13.2).

macro_rules! tokens {
    ($($token:ident $name:literal,)*) => {
        /// What a colour is for.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Token {
            $(#[doc = concat!("`", $name, "`")] $token,)*
        }

        impl Token {
            /// All of them, in a fixed order.
            pub const ALL: &[Self] = &[$(Self::$token,)*];

            /// As themes and scripts write it.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$token => $name,)*
                }
            }
        }
    };
}

tokens! {
    Accent "accent",
    Border "border",
    BorderAccent "borderAccent",
    BorderMuted "borderMuted",
    Success "success",
    Error "error",
    Warning "warning",
    Muted "muted",
    Dim "dim",
    Text "text",
    ThinkingText "thinkingText",
    SelectedBg "selectedBg",
    ScrollbarTrack "scrollbarTrack",
    ScrollbarThumb "scrollbarThumb",
    SearchMatchBg "searchMatchBg",
    SearchMatchText "searchMatchText",
    UserMessageBg "userMessageBg",
    UserMessageText "userMessageText",
    CustomMessageBg "customMessageBg",
    CustomMessageText "customMessageText",
    CustomMessageLabel "customMessageLabel",
    ToolPendingBg "toolPendingBg",
    ToolSuccessBg "toolSuccessBg",
    ToolErrorBg "toolErrorBg",
    ToolTitle "toolTitle",
    ToolOutput "toolOutput",
    MdHeading "mdHeading",
    MdLink "mdLink",
    MdLinkUrl "mdLinkUrl",
    MdCode "mdCode",
    MdCodeBlock "mdCodeBlock",
    MdCodeBlockBorder "mdCodeBlockBorder",
    MdQuote "mdQuote",
    MdQuoteBorder "mdQuoteBorder",
    MdHr "mdHr",
    MdListBullet "mdListBullet",
    ToolDiffAdded "toolDiffAdded",
    ToolDiffRemoved "toolDiffRemoved",
    ToolDiffContext "toolDiffContext",
    SyntaxComment "syntaxComment",
    SyntaxKeyword "syntaxKeyword",
    SyntaxFunction "syntaxFunction",
    SyntaxVariable "syntaxVariable",
    SyntaxString "syntaxString",
    SyntaxNumber "syntaxNumber",
    SyntaxType "syntaxType",
    SyntaxOperator "syntaxOperator",
    SyntaxPunctuation "syntaxPunctuation",
    ThinkingOff "thinkingOff",
    ThinkingMinimal "thinkingMinimal",
    ThinkingLow "thinkingLow",
    ThinkingMedium "thinkingMedium",
    ThinkingHigh "thinkingHigh",
    ThinkingXhigh "thinkingXhigh",
    ThinkingMax "thinkingMax",
    BashMode "bashMode",
}

impl Token {
    /// The token of that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|token| token.name() == name)
    }

    /// Whose colour an optional token has where a theme leaves it out.
    #[must_use]
    pub fn fallback(self) -> Option<Self> {
        match self {
            Self::ScrollbarTrack => Some(Self::Muted),
            Self::ScrollbarThumb | Self::SearchMatchText => Some(Self::Text),
            Self::SearchMatchBg => Some(Self::SelectedBg),
            Self::ThinkingMax => Some(Self::ThinkingXhigh),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_fifty_six_and_each_is_found_by_its_name() {
        // tui R13.2
        assert_eq!(Token::ALL.len(), 56);
        for (place, token) in Token::ALL.iter().enumerate() {
            assert_eq!(Token::parse(token.name()), Some(*token));
            assert_eq!(*token as usize, place);
            let fallback = token.fallback();
            assert!(fallback.is_none_or(|other| other.fallback().is_none()));
        }
        assert_eq!(Token::parse("Accent"), None);
    }
}
