/**
 * `writers` lanes that append until the time is up; `append(writer, events)` writes `events` events
 * to that writer's own stream. Returns milliseconds an append, the events written, and the whole
 * time.
 */
export const appendLoop = async (append, { writers, perAppend, seconds }) => {
  const latencies = [];
  const began = performance.now();
  const end = began + seconds * 1_000;
  const lane = async (writer) => {
    while (performance.now() < end) {
      const from = performance.now();
      await append(writer, perAppend);
      latencies.push(performance.now() - from);
    }
  };
  await Promise.all(Array.from({ length: writers }, (_, writer) => lane(writer)));
  return { latencies, events: latencies.length * perAppend, ms: performance.now() - began };
};

/** The payload of every contender: some 300 bytes of JSON. */
export const PAYLOAD = { text: 'x'.repeat(260), turn: 1 };
