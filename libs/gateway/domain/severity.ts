export type Severity = 'info' | 'warning' | 'error';

const ERRORS = ['TurnFailed', 'ToolCallFailed', 'TaskFailed', 'RunFailed'] as const;
const WARNINGS = [
  'ModelCallAborted',
  'ToolCallUnknown',
  'TurnCancelled',
  'BudgetExpired',
  'BudgetCorrected',
  'TaskAttemptFailed',
  'TaskCancelled',
  'RunCancelled',
  'WorkflowRefused',
] as const;

/** Event types of each severity. All others are `info`. */
export const TYPES_BY_SEVERITY: Readonly<Record<'warning' | 'error', readonly string[]>> = {
  error: ERRORS,
  warning: WARNINGS,
};

export const severityOf = (type: string): Severity => {
  if ((ERRORS as readonly string[]).includes(type)) return 'error';
  return (WARNINGS as readonly string[]).includes(type) ? 'warning' : 'info';
};
