//! Whatever comes in whatever order: each response is read once, or an error says that its outcome is unknown.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;
use crate::session::log::EventKind;

/// How many requests the POST of each stream has.
const REQUESTS: usize = 2;

/// What happens next.
#[derive(Clone, Debug)]
enum Step {
    Begin,
    Notify(usize),
    Respond(usize),
    Read(usize),
    Leave(usize),
    Return(usize),
    /// The store does this with the next writes.
    Store(Act),
    Wait(u64),
}

/// One POST and its caller.
struct Post {
    stream: StreamId,
    reader: Option<Reader>,
    /// Whether the caller's last connection may be left and come back.
    last: Option<EventId>,
    requests: Vec<usize>,
    answered: usize,
    said: Vec<String>,
    ids: Vec<EventId>,
}

impl Post {
    fn read(&mut self) {
        let Some(reader) = &mut self.reader else { return };
        let got = read(reader);
        self.take(got);
    }

    fn take(&mut self, got: Read) {
        self.last = got.ids.last().copied().or(self.last);
        self.said.extend(got.said);
        self.ids.extend(got.ids);
        if got.ended {
            self.reader = None;
        }
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let act = prop_oneof![
        4 => Just(Act::Take),
        2 => Just(Act::Fail),
        1 => Just(Act::TakeAndFail),
        2 => Just(Act::Hang),
        1 => Just(Act::TakeAndHang),
        1 => Just(Act::Adopt),
    ];
    let step = prop_oneof![
        2 => Just(Step::Begin),
        4 => (0..4_usize).prop_map(Step::Notify),
        6 => (0..4_usize).prop_map(Step::Respond),
        6 => (0..4_usize).prop_map(Step::Read),
        1 => (0..4_usize).prop_map(Step::Leave),
        2 => (0..4_usize).prop_map(Step::Return),
        3 => act.prop_map(Step::Store),
        4 => (0..1500_u64).prop_map(Step::Wait),
    ];
    proptest::collection::vec(step, 1..60)
}

async fn run(steps: Vec<Step>, revision: Revision) {
    let log = Scripted::new([]).await;
    let streams = log.streams(settings(), revision);
    let mut posts: Vec<Post> = Vec::new();
    let (mut script, mut adopted) = (Vec::new(), false);
    for step in steps {
        let now = posts.len();
        match step {
            Step::Begin => {
                let requests: Vec<usize> = (0..REQUESTS).map(|n| now * REQUESTS + n).collect();
                let reader = streams.begin_post(about(requests.iter().copied()));
                let (stream, reader) = (reader.stream(), Some(reader));
                let (said, ids) = (Vec::new(), Vec::new());
                posts.push(Post { stream, reader, last: None, requests, answered: 0, said, ids });
            }
            Step::Notify(n) => {
                if let Some(post) = posts.get(n) {
                    streams.push(post.stream, EventKind::Notification, notification());
                }
            }
            Step::Respond(n) => {
                let Some(post) = posts.get_mut(n) else { continue };
                if let Some(request) = post.requests.get(post.answered) {
                    streams.push(post.stream, EventKind::Response, response(*request));
                    post.answered += 1;
                    if post.answered == REQUESTS {
                        streams.complete(post.stream);
                    }
                }
            }
            Step::Read(n) => posts.get_mut(n).map(Post::read).unwrap_or_default(),
            Step::Leave(n) => {
                if let Some(post) = posts.get_mut(n) {
                    post.reader = None;
                }
            }
            Step::Return(n) => {
                let Some(post) = posts.get_mut(n) else { continue };
                if let Some(last) = post.last {
                    post.reader = streams.resume(last).ok();
                }
            }
            Step::Store(act) => {
                script.push(act);
                log.script(script.iter().copied());
            }
            Step::Wait(ms) => {
                script.clear();
                tokio::time::sleep(Duration::from_millis(ms)).await;
            }
        }
        let owner =
            crate::store::SessionStore::epochs(&log.store, vec![crate::session::journal::scripted::KEY]);
        adopted |= owner.await.expect("epochs")[0] != Some(Epoch::FIRST);
    }
    let mut restored = log.adopt(settings(), revision).await;
    restored.give_up(restored.unanswered.clone());
    settled(&restored.streams).await;
    // What the old owner had sent is still on its way.
    posts.iter_mut().for_each(Post::read);
    let unlogged = streams.journal().expect("a journal").take_unlogged() > 0;
    for mut post in posts {
        // Without an event id nobody can come back.
        let Some(last) = post.last else { continue };
        match restored.streams.resume(last) {
            Ok(mut reader) => post.take(read(&mut reader)),
            Err(ResumeError::Over) => {}
            Err(ResumeError::Unknown) => assert!(unlogged, "only what was not stored is unknown"),
        }
        let mut seen: HashMap<&str, usize> = HashMap::new();
        post.said.iter().for_each(|said| *seen.entry(said).or_default() += 1);
        for request in &post.requests {
            let response = seen.get(format!("n:{request}").as_str()).copied().unwrap_or(0);
            let unknown = seen.get(format!("outcome_unknown:{request}").as_str()).copied().unwrap_or(0);
            assert!(response <= 1 && unknown <= 1, "{request}: {:?} {adopted}", post.said);
            if !unlogged {
                assert_eq!(response + unknown, 1, "{request}: {:?} {adopted}", post.said);
            }
            if restored.streams.resume(last).err() != Some(ResumeError::Unknown) {
                assert!(response + unknown >= 1, "{request}: {:?} {adopted}", post.said);
            }
        }
        assert!(post.ids.windows(2).all(|w| w[0].place <= w[1].place), "{:?}", post.ids);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// case-B05, case-B09, L7
    #[test]
    fn every_response_is_read_once_or_said_to_be_unknown(steps in steps(), primed in any::<bool>()) {
        let revision = if primed { PRIMED } else { Revision::V2025_06_18 };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.expect("a runtime").block_on(run(steps, revision));
    }
}
