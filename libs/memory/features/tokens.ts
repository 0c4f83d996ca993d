/** IdentityBook. */
export const IDENTITY_BOOK = Symbol('IDENTITY_BOOK');
/** RecallFacts. */
export const RECALL_FACTS = Symbol('RECALL_FACTS');
/** AssembleContext. */
export const ASSEMBLE_CONTEXT = Symbol('ASSEMBLE_CONTEXT');
/** BelievedFacts. */
export const BELIEVED_FACTS = Symbol('BELIEVED_FACTS');
/** QueryFacts. */
export const QUERY_FACTS = Symbol('QUERY_FACTS');
