/** Something that is wrong, and where: `place` is a file, or an overlay with kind and name. */
export const problem = (place, message) => ({ place, message });

export const asList = (value) => (Array.isArray(value) ? value : []);

/**
 * Returns whether an image of others has a digest, or a tag with the number of a version. `alpine`
 * or `latest` may be another image tomorrow. Our own images are built from this tree.
 */
export const namesVersion = (image) =>
  /(^|\/)antiphon\/[\w-]+:[\w.-]+$/.test(image) || /(:[\w.-]*\d[\w.-]*|@sha256:[0-9a-f]{64})$/.test(image);

/** Names a document in messages, such as `Deployment agent`. */
export const nameOf = ({ kind, metadata }) => `${kind} ${metadata?.name}`;
