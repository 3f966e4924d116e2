import type { NamedOperation, OpenApiDocument } from '../../server/contract/openapi.ts'
import type { Block, OperationBlock, Prose } from './blocks.ts'
import type { PageView } from './page.ts'

/** A part of the document that was followed to its component; members that it does not have are missing. */
interface Part {
  readonly $ref?: string
  readonly name?: string
  readonly in?: string
  readonly description?: string
  readonly required?: boolean
  readonly schema?: object
  readonly headers?: Readonly<Record<string, Part>>
  readonly content?: Readonly<Record<string, object>>
}

/** Shows the contract as a page: every operation below its tag by its path, with what it takes and what it answers. */
export function referenceView(document: OpenApiDocument): PageView {
  const all = Object.entries(document.paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => ({ path, method, operation })),
  )
  const parts = document.tags.map(({ name, description }) => {
    const own = all
      .filter(({ operation }) => operation.tags[0] === name)
      .toSorted((one, other) => (one.path < other.path ? -1 : 1))
    const operations = own.map(({ path, method, operation }) =>
      operationBlock(document, `${method.toUpperCase()} ${path}`, operation),
    )
    return { id: anchorOf(name), title: name, note: description, operations }
  })
  const { description } = document.info
  return {
    title: 'API reference',
    blocks: [
      introduction(String(description)),
      { kind: 'contents', parts },
      ...parts.flatMap(({ operations, ...heading }): Block[] => [{ kind: 'heading', ...heading }, ...operations]),
      problemsOf(document),
      headersOf(document),
    ],
  }
}

function anchorOf(title: string): string {
  return `part-${title.toLowerCase().replaceAll(' ', '-')}`
}

function introduction(text: string): Block {
  return { kind: 'text', text: text.replaceAll('`', '') }
}

function operationBlock(document: OpenApiDocument, name: string, operation: NamedOperation): OperationBlock {
  const { operationId: id, summary, description, parameters = [], requestBody } = operation
  const inputs = parameters.map((one) => parameterRow(follow(document, one)))
  const body = requestBody && {
    name: 'body',
    what: requestBody.required ? 'required' : 'optional',
    lines: [prose(`${requestBody.description} ${typesOf(requestBody)}`)],
  }
  const answers = Object.entries(operation.responses).map(([status, one]) => {
    const answer = follow(document, one)
    const isShared = '$ref' in one && PROBLEM.test(one.$ref)
    const lines = isShared ? [prose(answer.description ?? '')] : answerLines(document, answer)
    return { name: status, what: '', lines }
  })
  const rows = body === undefined ? inputs : [...inputs, body]
  return {
    kind: 'operation',
    id,
    name,
    texts: [summary, description ?? '', openedBy(operation)].filter((text) => text !== '').map(prose),
    lists: [...(rows.length === 0 ? [] : [{ title: 'Parameters', rows }]), { title: 'Answers', rows: answers }],
  }
}

function parameterRow({ name = '', in: place = '', required, description = '', schema }: Part) {
  const what = required === true ? `${place}, required` : place
  const accepted = acceptedBy(schema ?? {})
  return { name, what, lines: [prose(description), ...(accepted === '' ? [] : [prose(accepted)])] }
}

interface Bounded {
  readonly items?: unknown
  readonly minimum?: number
  readonly maximum?: number
}

/** Says which values a schema has: those of a list, or a range. */
function acceptedBy(schema: Bounded): string {
  const { items, minimum, maximum } = schema
  const one = typeof items === 'object' && items !== null ? items : schema
  const values = 'enum' in one && Array.isArray(one.enum) ? one.enum.filter((value) => value !== '') : []
  if (values.length > 0) return `One of ${values.map((value) => `\`${String(value)}\``).join(', ')}.`
  return minimum === undefined || maximum === undefined ? '' : `${minimum} to ${maximum}.`
}

function answerLines(document: OpenApiDocument, answer: Part): Prose[] {
  const { description = '', headers = {} } = answer
  const named = Object.entries(headers).map(([name, one]): [string, boolean] => [
    name,
    follow(document, one).required === true,
  ])
  const list = (title: string, isRequired: boolean): string[] => {
    const names = named.filter(([, required]) => required === isRequired).map(([name]) => name)
    return names.length === 0 ? [] : [`${title}: \`${names.join(', ')}\``]
  }
  const lines = [typesOf(answer), ...list('Header fields', true), ...list('Optional header fields', false)]
  return [description, ...lines].filter((line) => line !== '').map(prose)
}

function typesOf({ content = {} }: Pick<Part, 'content'>): string {
  const types = Object.keys(content).map((type) => `\`${type}\``)
  return types.length === 0 ? '' : `As ${types.join(' or ')}.`
}

const OPENED_BY: Readonly<Record<string, string>> = {
  bearer: 'a local key',
  link: 'a signed link',
  delivery: 'a signature of the service',
}

function openedBy({ security = [] }: NamedOperation): string {
  const needed = security.flatMap((one) => Object.keys(one).flatMap((scheme) => OPENED_BY[scheme] ?? []))
  if (needed.length === 0) return 'Needs no key.'
  const isOpen = security.some((one) => Object.keys(one).length === 0)
  return isOpen ? `Shows more with ${needed.join(' or ')}.` : `Needs ${needed.join(' or ')}.`
}

/** The name of a problem that many operations have: what it consists of is shown once, at the end of the page. */
const PROBLEM = /([A-Z][a-z]*)?Problem(\d+)$/

function problemsOf(document: OpenApiDocument): OperationBlock {
  const rows = Object.entries(document.components['responses'] ?? {}).flatMap(([key, answer]) => {
    const [, form = '', status = ''] = PROBLEM.exec(key) ?? []
    return status === '' ? [] : [{ name: status, what: form.toLowerCase(), lines: answerLines(document, answer) }]
  })
  const text = prose('Forms of the problems.')
  return { kind: 'operation', id: 'problems', name: 'Problems', texts: [text], lists: [{ title: 'Answers', rows }] }
}

function headersOf({ components }: OpenApiDocument): Block {
  const headers: Readonly<Record<string, Part>> = components['headers'] ?? {}
  return {
    kind: 'facts',
    title: 'Header fields of answers',
    rows: Object.entries(headers)
      .filter(([name]) => !CONDITIONAL.test(name))
      .map(([name, { description = '' }]) => [name, { text: description.replaceAll('`', '') }]),
  }
}

/** Components of header fields that differ from another one only in that they are not always sent. */
const CONDITIONAL = /If(Known|Temporary)$|OfDocument$/

function follow({ components }: OpenApiDocument, part: Part): Part {
  const [, kind = '', name = ''] = /^#\/components\/(\w+)\/(.+)$/.exec(part.$ref ?? '') ?? []
  return components[kind]?.[name] ?? part
}

/** Splits a text at its backticks. */
function prose(text: string): Prose {
  return text.split('`').map((part, at) => ({ text: part, code: at % 2 === 1 }))
}
