/** Something that is wrong, and where: `place` is a file, or an overlay with kind and name. */
export const problem = (place, message) => ({ place, message });

export const asList = (value) => (Array.isArray(value) ? value : []);

/** What a document is called in messages: `overlays/local: Deployment agent`. */
export const nameOf = ({ kind, metadata }) => `${kind} ${metadata?.name}`;
