import type { FastifyInstance } from 'fastify';

const YAML = ['application/yaml', 'application/x-yaml', 'text/yaml'];

/** YAML bodies reach their handler as text: only the service that they are for can say what they mean. */
export const acceptYaml = (fastify: FastifyInstance): void => {
  fastify.addContentTypeParser(YAML, { parseAs: 'string' }, (_request, body, done) => done(null, body));
};
