/** Something that is wrong, and where: `place` is a file, or an overlay with kind and name. */
export const problem = (place, message) => ({ place, message });

export const asList = (value) => (Array.isArray(value) ? value : []);

/** Names a document in messages, such as `Deployment agent`. */
export const nameOf = ({ kind, metadata }) => `${kind} ${metadata?.name}`;
