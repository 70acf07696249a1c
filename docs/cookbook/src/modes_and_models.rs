use acp_sdk::v1::*;
use acp_server::{Handler, HandlerResult, Opening, Settings, Turn};

pub struct Coder;

impl Handler for Coder {
    type State = ();

    async fn open(&self, _: &mut (), _: &Opening) -> HandlerResult<Settings> {
        let modes = vec![
            SessionMode::new("plan", "Plan"),
            SessionMode::new("code", "Code"),
        ];
        let models = SessionConfigSelectOptions::Ungrouped(vec![
            SessionConfigSelectOption::new("small", "Small"),
            SessionConfigSelectOption::new("large", "Large"),
        ]);
        let model = SessionConfigSelect::new("small", models);
        let model = SessionConfigOption::new("model", "Model", model)
            .with_category(SessionConfigOptionCategory::Model);
        let web =
            SessionConfigOption::new("web", "Search the web", SessionConfigBoolean::new(true));
        let settings = Settings::new().modes(SessionModeState::new("plan", modes));
        Ok(settings.option(model).option(web))
    }

    async fn prompt(&self, _: &mut (), turn: Turn) -> HandlerResult<StopReason> {
        // Read them when you need them: the user changes them at any time.
        let settings = turn.session().settings();
        let model = settings.selected("model").unwrap_or("small");
        turn.send_text(format!("I ask the {model} model.")).await?;
        if settings.mode() == Some("plan") {
            turn.set_mode("code").await?;
        }
        Ok(StopReason::EndTurn)
    }
}
