import type { AntiphonConfig } from './antiphon-config.js';

export const REDACTED = '[set, not shown]';

/** The configuration without its secrets, for status answers and logs. Prompts are left out too: they are not ours to log. */
export const redactedConfig = (config: AntiphonConfig): AntiphonConfig => ({
  ...config,
  gateway: { ...config.gateway, token: config.gateway.token === null ? null : REDACTED },
  agents: config.agents.map((agent) => ({
    ...agent,
    systemPrompt: agent.systemPrompt === null ? null : REDACTED,
  })),
});
