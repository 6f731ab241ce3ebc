//! Documents that agent tests apply beside the example.

/// An agent with a scripted model and tools of several kinds, and one that it may ask.
pub const AGENTS: &str = r"
apiVersion: runfleet/v1
kind: ModelProvider
metadata: {name: played}
spec: {kind: scripted, script: agents.yaml, models: [played/one]}
---
apiVersion: runfleet/v1
kind: Tool
metadata: {name: decide}
spec:
  description: Decides about a discount.
  processStart: {process: approve-discount, wait: true}
  permission: ALLOW
  inputSchema:
    type: object
    properties: {amount: {type: number}}
    required: [amount]
---
apiVersion: runfleet/v1
kind: Tool
metadata: {name: later}
spec:
  description: Has a discount decided, sometime.
  processStart: {process: approve-discount, wait: false}
  permission: ALLOW
  inputSchema: {type: object, properties: {amount: {type: number}}, required: [amount]}
---
apiVersion: runfleet/v1
kind: Tool
metadata: {name: ask-helper}
spec: {description: Asks the helper., agent: helper, permission: ALLOW}
---
apiVersion: runfleet/v1
kind: Tool
metadata: {name: ask-self}
spec: {description: Asks another one like this., agent: worker, permission: ALLOW}
---
apiVersion: runfleet/v1
kind: Tool
metadata: {name: look-up}
spec: {description: Looks something up., project: {project: shop, function: look_up}, permission: ALLOW,
  inputSchema: {type: object, properties: {what: {type: string}}}}
---
apiVersion: runfleet/v1
kind: McpServer
metadata: {name: small}
spec: {stdio: {command: small}, permission: ALLOW}
---
apiVersion: runfleet/v1
kind: McpServer
metadata: {name: broken}
spec: {stdio: {command: nobody-knows}, permission: ALLOW}
---
apiVersion: runfleet/v1
kind: Agent
metadata: {name: helper}
spec: {model: played/one}
---
apiVersion: runfleet/v1
kind: Agent
metadata: {name: worker}
spec:
  model: played/one
  tools: [calculate, decide, later, ask-helper, ask-self, look-up]
---
apiVersion: runfleet/v1
kind: Agent
metadata: {name: connected}
spec:
  model: played/one
  mcpServers: [small, broken]
";
