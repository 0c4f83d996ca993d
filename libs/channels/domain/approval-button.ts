/** Decision by a button, and the approval that it is about. */
export interface ApprovalPress {
  readonly approvalId: string;
  readonly decision: 'approve' | 'deny';
}

export interface ApprovalButton {
  readonly label: string;
  readonly value: string;
  readonly style: 'primary' | 'danger';
}

const PRESS = /^approval:([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}):(approve|deny)$/;

/** Returns the buttons of an approval. A value has at most 64 bytes, which Telegram takes. */
export const approvalButtons = (approvalId: string): readonly ApprovalButton[] => [
  { label: 'Approve', value: `approval:${approvalId}:approve`, style: 'primary' },
  { label: 'Deny', value: `approval:${approvalId}:deny`, style: 'danger' },
];

/** Reads the value of a pressed button; null for any other one. */
export const readPress = (value: string | undefined): ApprovalPress | null => {
  const [, approvalId, decision] = PRESS.exec(value ?? '') ?? [];
  if (approvalId === undefined || decision === undefined) return null;
  return { approvalId, decision: decision as ApprovalPress['decision'] };
};

/** Maximum length of the arguments that a person sees, UTF-16 units. */
const MAX_SHOWN = 700;

/** Returns the text that asks a person. Arguments that do not fit are cut, and it says so. */
export const approvalText = (agentId: string, tool: string, input: unknown): string => {
  const written = JSON.stringify(input).replaceAll(/\p{Cc}|\p{Cf}/gu, ' ');
  const shown =
    written.length <= MAX_SHOWN
      ? written
      : `${written.slice(0, MAX_SHOWN).replace(/[\ud800-\udbff]$/, '')} … (cut: ${written.length} characters)`;
  return `${agentId} asks for an approval.\nTool: ${tool}\nArguments: ${shown}`;
};
