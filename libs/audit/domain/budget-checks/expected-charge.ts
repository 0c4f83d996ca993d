import { costMicroUsd } from '@antiphon/kernel';
import type { SessionEventOf } from '@antiphon/contracts/agent';
import type { BudgetEventOf } from '@antiphon/contracts/metering';

type Reserved = BudgetEventOf<'BudgetReserved'>['data'];
export type CallEnd = SessionEventOf<'ModelCallCompleted' | 'ModelCallAborted'>;

/** What a session's event says that its attempt costs. */
export type ExpectedCharge =
  | { readonly kind: 'nothing' }
  | {
      readonly kind: 'charge';
      readonly inputTokens: number;
      readonly outputTokens: number;
      readonly microUsd: number;
      readonly estimated: boolean;
    };

const chargeOf = (
  { price }: Reserved,
  inputTokens: number,
  outputTokens: number,
  estimated: boolean,
): ExpectedCharge => ({
  kind: 'charge',
  inputTokens,
  outputTokens,
  microUsd: price === null ? 0 : costMicroUsd(price, inputTokens, outputTokens),
  estimated,
});

/** Nothing was sent: nothing. Somebody knows the usage: that. Else the whole bound, as an estimate. */
export const expectedCharge = (reserved: Reserved, event: CallEnd): ExpectedCharge => {
  const { usage } = event.data;
  if (event.type === 'ModelCallAborted' && !event.data.dispatched) return { kind: 'nothing' };
  return usage === null
    ? chargeOf(reserved, reserved.inputBound, reserved.outputBound, true)
    : chargeOf(reserved, usage.inputTokens, usage.outputTokens, usage.estimated);
};
