import { HEADER_COMPONENTS, PROBLEM_RESPONSES } from '../answers.ts'
import { PARAMETERS, SECURITY_SCHEMES } from '../components.ts'
import type { ContractEntry, OpenApiDocument } from '../openapi.ts'
import { SCHEMAS } from './schemas.ts'

const INTRODUCTION = [
  'The paths of the service, read-only, and a few of the mirror.',
  'HEAD is as GET; any other method is 405.',
  'A slash at the end changes nothing, except under /external/, /osv/ and /-/.',
  'Answers may be compressed (`Accept-Encoding: gzip`), except archives. A malformed request is 400, 408 or 431.',
  'While all connections are in use, all but /-/health is 503.',
].join('\n\n')

const TAGS = [
  ['Public feeds', "The service's public feeds. They need no key."],
  ['Scanners', "osv.dev's bucket and query API over the mirrored records. They need no key."],
  ['Catalog', 'What the service shows behind a credential.'],
  ['Package catalog', 'Versions of packages.'],
  ['Identity', 'Users, where a setting allows it.'],
  ['VEX repository', 'OpenVEX documents, for Trivy.'],
  ['Mirror', "The mirror's own pages."],
  ['Webhooks', 'Deliveries of the service.'],
] as const

/** What the document is built from. */
interface ContractParts {
  readonly version: string
  /** What the paths are below: `server.publicUrl`, or the path prefix that a proxy takes off, or `/`. */
  readonly server: string
  /** What the routes of the server declare. */
  readonly contracts: readonly ContractEntry[]
  /** Those that features add. */
  readonly schemas: Readonly<Record<string, object>>
}

/** Builds the document from what routes declare. */
export function buildContract({ version, server, contracts, schemas }: ContractParts): OpenApiDocument {
  const paths: OpenApiDocument['paths'] = Object.fromEntries(
    contracts.map(([path, contract]) => [
      path,
      Object.fromEntries(
        Object.entries(contract).map(([method, operation]) => [
          method,
          { operationId: operationId(method, path), ...operation },
        ]),
      ),
    ]),
  )
  const used = new Set(Object.values(paths).flatMap((one) => Object.values(one).flatMap((o) => o.tags)))
  return {
    openapi: '3.1.1',
    info: {
      title: 'Patchmirror',
      version,
      description: INTRODUCTION,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: server }],
    externalDocs: { url: 'docs', description: 'As a page.' },
    tags: TAGS.filter(([name]) => used.has(name)).map(([name, description]) => ({
      name,
      description,
    })),
    paths,
    components: { ...usedComponents(paths, { schemas }), securitySchemes: SECURITY_SCHEMES },
  }
}

/** A name such as `getV1TagsIdSbom`. */
function operationId(method: string, path: string): string {
  const words = path.split(/[^A-Za-z0-9]+/).filter((word) => word !== '')
  const named = words.map((word) => word.charAt(0).toUpperCase() + word.slice(1))
  return `${method}${named.join('') || 'Root'}`
}

const COMPONENTS: Readonly<Record<string, Readonly<Record<string, object>>>> = {
  schemas: SCHEMAS,
  responses: PROBLEM_RESPONSES,
  parameters: PARAMETERS,
  headers: HEADER_COMPONENTS,
}

/** The components that the paths refer to, directly or through others; `more`: those of features. */
function usedComponents(
  paths: object,
  more: Readonly<Record<string, Readonly<Record<string, object>>>>,
): Record<string, Record<string, object>> {
  const used: Record<string, Record<string, object>> = {}
  const follow = (part: object): void => {
    for (const [, kind = '', name = ''] of JSON.stringify(part).matchAll(/#\/components\/(\w+)\/([\w-]+)/g)) {
      const component = more[kind]?.[name] ?? COMPONENTS[kind]?.[name]
      if (component === undefined || used[kind]?.[name] !== undefined) continue
      used[kind] = { ...used[kind], [name]: component }
      follow(component)
    }
  }
  follow(paths)
  return used
}
