//! Calculates with FEEL: `expression` and `values`. The work of one evaluation is bounded; it does not wait for anything.

use std::sync::Arc;

use runfleet_flow::CalculateError;
use serde_json::{Map, Value};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

use crate::call::{Calling, Executor, ToolCall, texts};
use crate::outcome::ToolOutcome;

/// Evaluations at once: they need a processor each, and the others need some too.
const AT_ONCE: usize = 4;

/// Evaluates expressions.
#[derive(Debug, Clone)]
pub struct Calculate {
    permits: Arc<Semaphore>,
}

impl Default for Calculate {
    fn default() -> Self {
        Self { permits: Arc::new(Semaphore::new(AT_ONCE)) }
    }
}

impl Executor for Calculate {
    fn call(&self, call: ToolCall, deadline: Instant) -> Calling<'_> {
        let permits = Arc::clone(&self.permits);
        Box::pin(async move {
            let evaluated = async {
                let permit = permits.acquire_owned().await.ok()?;
                let evaluated = tokio::task::spawn_blocking(move || {
                    // Held by the thread, which goes on when nobody waits for it any more.
                    let _permit = permit;
                    evaluate(&call.arguments)
                });
                evaluated.await.ok()
            };
            let outcome = timeout_at(deadline, evaluated).await.ok().flatten();
            outcome.unwrap_or_else(|| ToolOutcome::failed(texts::TIME))
        })
    }

    fn only_reads(&self) -> bool {
        true
    }
}

fn evaluate(arguments: &Map<String, Value>) -> ToolOutcome {
    let Some(expression) = arguments.get("expression").and_then(Value::as_str) else {
        return ToolOutcome::argument("expression", texts::ARGUMENT);
    };
    let none = Map::new();
    let values = match arguments.get("values") {
        None | Some(Value::Null) => &none,
        Some(Value::Object(values)) => values,
        Some(_) => return ToolOutcome::argument("values", texts::ARGUMENT),
    };
    match runfleet_flow::calculate(expression, values) {
        Ok(value) => ToolOutcome::success(value),
        Err(CalculateError::Expression) => ToolOutcome::argument("expression", texts::EXPRESSION),
        Err(CalculateError::Values) => ToolOutcome::argument("values", texts::VALUES),
        Err(CalculateError::TooExpensive) => ToolOutcome::argument("expression", texts::EXPENSIVE),
        Err(CalculateError::NoValue) => ToolOutcome::argument("expression", texts::NO_VALUE),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{call, later};

    async fn calculate(arguments: &Value) -> ToolOutcome {
        Calculate::default().call(call(arguments), later()).await
    }

    #[tokio::test]
    async fn an_expression_is_evaluated_exactly() {
        let arguments =
            json!({"expression": "sum(prices) * 1.19", "values": {"prices": [0.1, 0.2]}});
        assert_eq!(calculate(&arguments).await, ToolOutcome::success(json!(0.357)));
        assert_eq!(calculate(&json!({"expression": "1+1"})).await, ToolOutcome::success(json!(2)));
    }

    #[tokio::test]
    async fn each_failure_names_its_argument_and_no_value() {
        for (arguments, path, message) in [
            (json!({}), "/expression", texts::ARGUMENT),
            (json!({"expression": "1", "values": 2}), "/values", texts::ARGUMENT),
            (json!({"expression": "1", "values": {"a b": 1}}), "/values", texts::VALUES),
            (json!({"expression": "s3cret +"}), "/expression", texts::EXPRESSION),
            (
                json!({"expression": "a+1", "values": {"a": "s3cret"}}),
                "/expression",
                texts::NO_VALUE,
            ),
            (
                json!({"expression": "for i in 1..9000 return for j in 1..9000 return i"}),
                "/expression",
                texts::EXPENSIVE,
            ),
        ] {
            let expected = ToolOutcome::Failed { path: path.to_owned(), message };
            assert_eq!(calculate(&arguments).await, expected, "{arguments}");
        }
    }
}
