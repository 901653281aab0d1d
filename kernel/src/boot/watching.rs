//! Changes of files become reloads, without anybody asking (`plugin-abi.md` §10).

use std::sync::Arc;
use std::time::Duration;

use pliant_sdk::Event;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::Kernel;
use crate::reload::Reloader;
use crate::settings::Settings;
use crate::watch::{Changes, Class, Pauses, Place, Told, Watcher};

/// Reloads what changes, until it is dropped.
#[derive(Debug)]
pub struct Watching(JoinHandle<()>);

impl Drop for Watching {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Kernel {
    /// Watches the files of everything that is loaded, and reloads what changes, unless the user wants
    /// none of it. To be called when a session is open; nothing waits for it.
    #[must_use]
    pub fn watch(&self) -> Watching {
        let wanted = Wanted::of(&self.settings.now());
        Watching(tokio::spawn(watch(Arc::clone(&self.reloader), wanted)))
    }
}

async fn watch(reloader: Arc<Reloader>, wanted: Wanted) {
    let (tell, mut told) = mpsc::unbounded_channel();
    // What changed since it was loaded and before it is watched is told too.
    let known = reloader.stamps().await;
    let wanted = Arc::new(wanted);
    let (of_places, wants) = (Arc::clone(&reloader), Arc::clone(&wanted));
    let start = move || {
        let places = wants.places(&of_places);
        let tell = move |what| {
            // Nobody listens at the end of the program.
            let _ = tell.send(what);
        };
        match places.is_empty() {
            true => Ok(None),
            false => Watcher::start(places, Some(known), wants.pauses, tell).map(Some),
        }
    };
    let started = tokio::task::spawn_blocking(start).await;
    let started = match started.unwrap_or_else(|lost| Err(std::io::Error::other(lost))) {
        Ok(started) => started,
        Err(error) => {
            let message = format!(
                "Plugins and scripts that change are not reloaded by themselves: {error}. /reload loads them."
            );
            reloader.say(Event::Notice { message }).await;
            return;
        }
    };
    let Some(mut watcher) = started else {
        return;
    };
    reloader.learn().await;
    loop {
        let first = tokio::select! {
            first = told.recv() => first,
            () = reloader.moved() => {
                let (reloader, wanted) = (Arc::clone(&reloader), Arc::clone(&wanted));
                let Some(anew) = watch_anew(watcher, reloader, wanted).await else {
                    return;
                };
                watcher = anew;
                continue;
            }
        };
        let Some(first) = first else {
            return;
        };
        let mut paths = Vec::new();
        // What came while the last reload was at work is one more reload, however much it is.
        for one in std::iter::once(first).chain(std::iter::from_fn(|| told.try_recv().ok())) {
            match one {
                Told::Changes(Changes { changed, removed }) => {
                    paths.extend(changed.into_iter().chain(removed));
                }
                Told::Notice(message) => reloader.say(Event::Notice { message }).await,
            }
        }
        if !paths.is_empty() {
            // What came of it, the sessions are told.
            let _ = reloader.changed(paths).await;
        }
    }
}

/// Watches the places there are now, on a thread that may wait for the disk.
/// `None` at the end of the program.
async fn watch_anew(
    watcher: Watcher,
    reloader: Arc<Reloader>,
    wanted: Arc<Wanted>,
) -> Option<Watcher> {
    // What was loaded from there is known as it was then.
    let known = reloader.stamps().await;
    let look = move || {
        watcher.watch(wanted.places(&reloader), known);
        watcher
    };
    tokio::task::spawn_blocking(look).await.ok()
}

/// What of it the user wants.
struct Wanted {
    libraries: bool,
    scripts: bool,
    texts: bool,
    pauses: Pauses,
}

impl Wanted {
    fn of(settings: &Settings) -> Self {
        let is_on = |key: &str| settings.is_on(key).unwrap_or(true);
        let all = is_on("plugins.hotReload") && is_on("hotReload.enabled");
        let kind = |kind: &str| match settings.get("hotReload.kinds").as_array() {
            Some(kinds) => kinds.iter().any(|wanted| wanted == kind),
            None => true,
        };
        let text = settings.count("hotReload.debounceMs");
        let default = Pauses::default();
        Self {
            libraries: all && is_on("hotReload.dylibs") && kind("dylib"),
            scripts: all && kind("extension"),
            texts: all && ["skill", "prompt", "context"].into_iter().any(kind),
            pauses: Pauses {
                text: text.map_or(default.text, Duration::from_millis),
                ..default
            },
        }
    }

    fn places(&self, reloader: &Reloader) -> Vec<Place> {
        let mut places = reloader.places();
        places.retain(|place| match place.class {
            Class::Library => self.libraries,
            Class::Script => self.scripts,
            Class::Text => self.texts,
        });
        places
    }
}
