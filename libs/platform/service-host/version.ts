/** Version of the whole house; a test holds it against the root package. */
export const VERSION = '0.1.0';
