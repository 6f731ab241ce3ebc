// Generated from the contract of the fleet by `npm run generate`. Do not edit.

/** Arguments of `processes.start`. */
export const processStart = {
  "type": "object",
  "properties": {
    "processInfoId": {
      "type": "string",
      "minLength": 1,
      "maxLength": 64,
      "pattern": "^[A-Za-z0-9_-]+$"
    },
    "input": {
      "type": "object",
      "additionalProperties": true
    },
    "instanceName": {
      "type": "string",
      "minLength": 1,
      "maxLength": 255
    },
    "idempotencyKey": {
      "type": "string",
      "minLength": 1,
      "maxLength": 128,
      "pattern": "^[A-Za-z0-9][A-Za-z0-9._:-]*$"
    },
    "onComplete": {
      "$ref": "#/$defs/OutcomeJob"
    }
  },
  "additionalProperties": false,
  "required": [
    "processInfoId"
  ],
  "$defs": {
    "OutcomeJob": {
      "type": "object",
      "properties": {
        "job": {
          "type": "string",
          "minLength": 1,
          "maxLength": 100,
          "pattern": "^[A-Za-z][A-Za-z0-9_]*$"
        },
        "payload": {}
      },
      "additionalProperties": false,
      "required": [
        "job"
      ]
    }
  }
} as const;

/** Arguments of `agents.start`. */
export const agentStart = {
  "type": "object",
  "properties": {
    "agentId": {
      "type": "string",
      "minLength": 1,
      "maxLength": 64,
      "pattern": "^[A-Za-z0-9_-]+$"
    },
    "instruction": {
      "type": "string",
      "minLength": 1,
      "maxLength": 10000,
      "pattern": "\\S"
    },
    "variables": {
      "type": "object",
      "additionalProperties": true
    },
    "records": {
      "type": "array",
      "items": {
        "$ref": "#/$defs/AgentRecord"
      },
      "maxItems": 20
    },
    "resultSchema": {
      "type": "object",
      "additionalProperties": true
    },
    "runAs": {
      "$ref": "#/$defs/RunAs"
    },
    "approvalPolicy": {
      "$ref": "#/$defs/ApprovalPolicy"
    },
    "timeoutSeconds": {
      "type": "integer",
      "format": "uint32",
      "minimum": 10,
      "maximum": 1800
    },
    "idempotencyKey": {
      "type": "string",
      "minLength": 1,
      "maxLength": 128,
      "pattern": "^[A-Za-z0-9][A-Za-z0-9._:-]*$"
    },
    "onResult": {
      "$ref": "#/$defs/OutcomeJob"
    },
    "deliverTo": {
      "$ref": "#/$defs/DeliverTo"
    }
  },
  "additionalProperties": false,
  "required": [
    "agentId",
    "instruction"
  ],
  "$defs": {
    "AgentRecord": {
      "type": "object",
      "properties": {
        "objectSlug": {
          "type": "string",
          "minLength": 1,
          "maxLength": 355,
          "pattern": "^[A-Za-z_][A-Za-z0-9_]*$"
        },
        "recordId": {
          "type": "string",
          "minLength": 1,
          "maxLength": 128
        },
        "withActivities": {
          "type": "boolean"
        }
      },
      "additionalProperties": false,
      "required": [
        "objectSlug",
        "recordId"
      ]
    },
    "RunAs": {
      "oneOf": [
        {
          "type": "string",
          "const": "caller"
        },
        {
          "type": "string",
          "const": "agent"
        }
      ]
    },
    "ApprovalPolicy": {
      "oneOf": [
        {
          "type": "string",
          "const": "deny"
        },
        {
          "type": "string",
          "const": "autoApprove"
        }
      ]
    },
    "OutcomeJob": {
      "type": "object",
      "properties": {
        "job": {
          "type": "string",
          "minLength": 1,
          "maxLength": 100,
          "pattern": "^[A-Za-z][A-Za-z0-9_]*$"
        },
        "payload": {}
      },
      "additionalProperties": false,
      "required": [
        "job"
      ]
    },
    "DeliverTo": {
      "type": "object",
      "properties": {
        "personnelId": {
          "type": "string",
          "minLength": 1,
          "maxLength": 64,
          "pattern": "^[A-Za-z0-9_-]+$"
        },
        "conversation": {
          "$ref": "#/$defs/Conversation"
        },
        "title": {
          "type": "string",
          "minLength": 1,
          "maxLength": 200
        }
      },
      "additionalProperties": false,
      "required": [
        "personnelId"
      ]
    },
    "Conversation": {
      "oneOf": [
        {
          "type": "string",
          "const": "new"
        },
        {
          "type": "string",
          "const": "latest"
        }
      ]
    }
  }
} as const;
