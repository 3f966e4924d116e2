import type { OpenApiDocument } from '../../src/server/contract/openapi.ts'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAgent } from '../../src/daemon/agent.ts'
import { loadQuick } from './limits.ts'
import { FEATURES } from '../../src/features.ts'
import { pino } from 'pino'
import { resolve } from './openapi.ts'

type Operation = OpenApiDocument['paths'][string][string]

/** The document of a mirror with no settings of its own, as it serves it, without the pages for people. */
export async function ownDocument(): Promise<OpenApiDocument> {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-openapi-'))
  const { config } = loadQuick({
    env: { PATCHMIRROR_DATA_DIR: dir, PATCHMIRROR_SERVER_LISTEN: '127.0.0.1:0' },
    cwd: dir,
  })
  const agent = createAgent({
    features: FEATURES,
    config,
    version: '',
    log: pino({ level: 'silent' }),
    offline: true,
    onEnded: () => undefined,
  })
  try {
    const { url } = await agent.start()
    const document = (await (await fetch(`${url}/-/openapi.json`)).json()) as OpenApiDocument
    return { ...document, tags: document.tags.filter(({ name }) => name !== 'Pages') }
  } finally {
    await agent.close()
    rmSync(dir, { recursive: true, force: true })
  }
}

const code = (text: string): string => `\`${text}\``

/** What opens an operation. */
function openedBy({ security }: Operation): string {
  if (security === undefined) return 'nothing'
  const schemes = security.flatMap((one) => Object.keys(one))
  if (schemes.includes('link')) return 'signed link'
  if (schemes.includes('delivery')) return 'signature'
  return security.some((one) => Object.keys(one).length === 0) ? 'key, for all of it' : 'key'
}

function statusesOf(document: OpenApiDocument, { responses }: Operation): string {
  return Object.entries(responses)
    .map(([status, one]) => {
      const types = Object.keys(resolve(document, one).content ?? {})
      return Number(status) < 300 && types.length > 0 ? `${status} ${types.map(code).join(' or ')}` : status
    })
    .join(', ')
}

/** An input as the page shows it. */
interface Input {
  readonly name: string
  readonly in: string
  readonly description: string
  readonly required?: boolean
  readonly schema: Readonly<Record<string, unknown>>
}

function inputsOf(document: OpenApiDocument, { parameters = [] }: Operation): Input[] {
  return parameters.map((one) => resolve(document, one) as unknown as Input)
}

function accepted({ schema }: Input): string {
  const { items } = schema as { items?: Readonly<Record<string, unknown>> }
  const values = (items ?? schema)['enum'] as readonly string[] | undefined
  if (values !== undefined)
    return values
      .filter((one) => one !== '')
      .map(code)
      .join(', ')
  const { minimum, maximum } = schema as { minimum?: number; maximum?: number }
  return minimum === undefined || maximum === undefined ? '' : `${minimum} to ${maximum}`
}

/** The Markdown page made from the document; `table` formats head and rows. */
export function openApiPage(
  document: OpenApiDocument,
  note: string,
  table: (head: readonly string[], rows: readonly (readonly string[])[]) => string,
): string {
  const all = Object.entries(document.paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => ({ path, method, operation })),
  )
  const sections = document.tags.flatMap(({ name, description }) => {
    const own = all
      .filter(({ operation }) => operation.tags.includes(name))
      .sort(({ path }, other) => path.localeCompare(other.path, 'en'))
    const rows = own.map(({ path, method, operation }) => [
      code(`${method.toUpperCase()} ${path}`),
      operation.summary,
      inputsOf(document, operation)
        .filter((one) => one.in === 'query')
        .map((one) => code(one.name))
        .join(', '),
      openedBy(operation),
      statusesOf(document, operation),
    ])
    const inputs = own.flatMap(({ operation }) => inputsOf(document, operation))
    const named = new Map(inputs.map((one) => [`${one.in} ${one.name}`, one]))
    const described = [...named.values()]
      .filter((one) => one.in !== 'header')
      .map((one) => [code(one.name), one.in, accepted(one), one.description])
    return [
      `## ${name}`,
      description,
      table(['Operation', 'What', 'Query', 'Opened by', 'Answers'], rows),
      ...(described.length === 0 ? [] : [table(['Parameter', 'In', 'Values', 'Meaning'], described)]),
    ]
  })
  const { headers = {}, responses = {}, securitySchemes = {} } = document.components
  const text = (part: object): string => (part as { description?: string }).description ?? ''
  const problems = Object.entries(responses).filter(([name]) => name.startsWith('Problem'))
  return [
    '# Operations of the HTTP API',
    note,
    'The same document in OpenAPI 3.1, as this mirror serves it with its own settings: `GET /-/openapi.json` ([HTTP API](http-api.md)). That one also lists the pages for people, below `/-/ui/`.',
    String(document.info['description']),
    '## Credentials',
    table(
      ['Scheme', 'Meaning'],
      Object.entries(securitySchemes).map(([name, one]) => [code(name), text(one)]),
    ),
    ...sections,
    '## Problems',
    'The body is `{"error", "message", …}`; `{"error", "error_description", "status_code"}` on the identity surface; `{"code", "message"}` ' +
      'under `/osv/v1/`; a page on the pages for people.',
    table(
      ['Status', 'Meaning', 'Header fields'],
      problems
        .map(([name, one]) => [
          name.slice('Problem'.length),
          text(one),
          Object.keys(resolve(document, one).headers ?? {})
            .map(code)
            .join(', '),
        ])
        .sort(([one = ''], [other = '']) => one.localeCompare(other)),
    ),
    '## Header fields of answers',
    table(
      ['Header field', 'Meaning'],
      Object.entries(headers)
        .filter(([name]) => !/If(Known|Temporary)$|OfDocument$/.test(name))
        .map(([name, one]) => [code(name), text(one)]),
    ),
  ].join('\n\n')
}
