//! The recipes of `docs/cookbook` and the programs of `docs/migration`: a module each, whose text is in its
//! page. A test compares both, and runs them.

#![allow(
    missing_docs,
    missing_debug_implementations,
    reason = "the page of a recipe explains it"
)]
#![cfg(unix)]

pub mod agent_as_a_tool;
pub mod answer_by_a_proxy;
pub mod ask_before_writing;
pub mod ask_the_user;
pub mod attach_a_picture;
pub mod both_versions;
pub mod delegate_a_task;
pub mod editor_tool;
pub mod extension_methods;
pub mod fork_a_session;
pub mod host_any_agent;
pub mod limit_a_turn;
pub mod list_and_delete_sessions;
pub mod log_in;
pub mod migration_echo_agent;
pub mod migration_one_shot_client;
pub mod migration_plain_agent;
pub mod migration_python_client;
pub mod migration_typescript_agent;
pub mod modes_and_models;
pub mod record_and_replay;
pub mod redact_secrets;
pub mod resume_a_session;
pub mod rule_file;
pub mod run_a_command;
pub mod run_the_suite;
pub mod serve_over_http;
pub mod show_a_plan;
pub mod slash_commands;
pub mod steer_a_turn;
pub mod stop_cleanly;
pub mod two_clients;
pub mod undo_a_turn;
pub mod unsaved_buffers;
pub mod use_mcp_servers;
pub mod without_async;
