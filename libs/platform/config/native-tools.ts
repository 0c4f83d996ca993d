/** Plug-ins that are registered without configuration. */
export const BUNDLED_PLUGINS: readonly string[] = ['echo', 'calculator', 'http-get'];

/** Tools of the agent service itself: agents talk to each other, and work on files. */
export const NATIVE_TOOLS = [
  'send_message',
  'ask_agent',
  'hand_over',
  'spawn_agent',
  'delegate_task',
  'make_plan',
  'plan_step',
  'ls',
  'read',
  'write',
  'edit',
  'rm',
  'move',
  'search',
  'find_tools',
  'read_result',
  'search_result',
] as const;
export type NativeToolName = (typeof NATIVE_TOOLS)[number];
