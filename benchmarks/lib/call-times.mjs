/**
 * Returns the milliseconds of each tool call in the events of a session, by tool. A call lasts from
 * the answer of the model that asks for it until the start of the next model call is recorded. Each
 * step has one call.
 *
 * Some tools run while the answer is being committed, and others after it. So the time since
 * `ToolCallRequested` was recorded leaves out a part of the early ones. The answer is before
 * both, and `ModelCallStarted` is in the append of the outcome of both. The log stamps an event
 * before its flush, so that the flush of the outcome counts for neither. The bytes of an edit
 * are inserted before the stamp.
 */
export const callTimes = (events) => {
  const times = {};
  let answeredAt = 0;
  let name = null;
  for (const { type, data, recordedAt } of events) {
    if (type === 'ModelCallCompleted') answeredAt = Date.parse(data.completedAt);
    if (type === 'ToolCallFailed')
      throw new Error(`a call failed: ${data.code} ${JSON.stringify(data.cause)}`);
    if (type === 'ToolCallRequested') ({ name } = data);
    if (type !== 'ModelCallStarted' || name === null) continue;
    (times[name] ??= []).push(Date.parse(recordedAt) - answeredAt);
    name = null;
  }
  return times;
};
