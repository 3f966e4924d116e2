import { plainName, readText } from '../field-names.ts'
import { truthOf } from '../list-names.ts'
import { type Fields, isObject, textOfJson } from '../objects.ts'

/** States of something that is still being made. */
const UNFINISHED =
  /^(?:accepted|processing|pending|queued|building|generating|scheduled|running|started|waiting|creating|in[ _-]?progress|not[ _-]?ready)$/i
const FAILED = /^(?:errors?|errored|fail|failed|failure|fault|unavailable)$/i

const OF_STATE = ['status', 'state', 'phase', 'result', 'outcome']
const OF_ERROR = ['error', 'errors', 'error_description', 'error_message']
const OF_WORDS = [
  'message',
  'error_description',
  'error_message',
  'detail',
  'details',
  'title',
  'reason',
  'description',
  'msg',
  'code',
]

const ERROR_NAMES: ReadonlySet<string> = new Set(OF_ERROR.map(plainName))

/** Members of an error whose objects and lists are about the error too. */
const OF_ERRORS: ReadonlySet<string> = new Set([
  ...ERROR_NAMES,
  ...['detail', 'details', 'links', 'warnings', 'notices', 'messages'],
])

/** Members with a text or a number that stand around an error, and are no content by themselves. */
const BESIDE: ReadonlySet<string> = new Set([
  ...[...OF_STATE, ...OF_WORDS].map(plainName),
  ...['success', 'ok', 'statuscode', 'httpstatus', 'errorcode', 'type', 'instance', 'path'],
  ...['timestamp', 'time', 'date', 'requestid', 'traceid', 'correlationid', 'docurl', 'helpurl'],
  ...['documentationurl', 'help', 'hint', 'retryafter', 'progress'],
  ...['total', 'count', 'limit', 'page', 'perpage', 'pagesize', 'size', 'offset'],
])

/** Longest words of an error that a message repeats, and nesting down to which they are looked for. */
const MAX_WORDS = 200
const MAX_DEPTH = 3

/**
 * Returns what is wrong, in upstream's words, where a whole answer is an error although its status is 200; null where it is
 * none. An answer with content of its own is none: an item can have a field `error`.
 */
export function errorOfAnswer(value: unknown): string | null {
  return isObject(value) && !hasContent(value) ? errorIn(value) : null
}

/** Returns the same of a page of a list: its content is the items, in any array but that of the errors. */
export function errorOfPage(value: unknown): string | null {
  return isObject(value) && !hasItems(value) ? errorIn(value) : null
}

/** Returns the state of an answer without content that is not ready yet (`{"status":"processing"}`); null for any other. */
export function unfinishedState(value: unknown): string | null {
  if (!isObject(value) || hasContent(value)) return null
  const state = readText(value, OF_STATE)
  if (state !== null && UNFINISHED.test(state)) return state
  const inner = Object.values(value).map(unfinishedState)
  return inner.find((one) => one !== null) ?? null
}

/** Returns whether a text is the state of something that is still being made. */
export function isUnfinished(state: string): boolean {
  return UNFINISHED.test(state)
}

/** Returns whether an answer has content of its own, or an empty list where it `mayBeEmpty`; a message, a state and `null` are none. */
export function saysAnything(value: unknown, mayBeEmpty: boolean): boolean {
  if (Array.isArray(value)) return mayBeEmpty || value.length > 0
  return (
    isObject(value) && (hasContent(value) || (mayBeEmpty && Object.values(value).some((one) => Array.isArray(one))))
  )
}

function hasContent(value: Fields, depth = 0): boolean {
  return Object.entries(value).some(([name, inner]) => {
    const plain = plainName(name)
    if (OF_ERRORS.has(plain) || isEmpty(inner)) return false
    if (isObject(inner)) return depth === MAX_DEPTH || hasContent(inner, depth + 1)
    return Array.isArray(inner) || !BESIDE.has(plain)
  })
}

function hasItems(value: Fields, depth = 0): boolean {
  return Object.entries(value).some(([name, inner]) => {
    if (OF_ERRORS.has(plainName(name))) return false
    if (Array.isArray(inner)) return inner.length > 0
    return isObject(inner) && depth < MAX_DEPTH && hasItems(inner, depth + 1)
  })
}

function isEmpty(value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0
  return value === null || value === '' || value === false
}

/** Returns the words of the error that an object names, or one within it. */
function errorIn(value: Fields, depth = 0): string | null {
  for (const [name, inner] of Object.entries(value)) {
    if (ERROR_NAMES.has(plainName(name)) && isError(inner))
      return wordsIn(inner) ?? messageIn(value) ?? cut(textOfJson(inner))
  }
  const message = messageIn(value)
  if (message !== null && isFailed(value)) return message
  if (depth === MAX_DEPTH) return null
  const within = Object.values(value).filter(isObject)
  return within.map((one) => errorIn(one, depth + 1)).find((one) => one !== null) ?? null
}

/** Values of a member for errors that say that there is none. */
const NO_ERROR = /^(?:|0|none|null|nil|ok|success|false|no|no errors?)$/i

/** Returns whether a member says that there is an error: not null, false or empty, and no code of success. */
export function isError(value: unknown): boolean {
  if (Array.isArray(value)) return value.length > 0
  if (!isObject(value)) return value !== null && !NO_ERROR.test(textOfJson(value).trim())
  const isSuccess = 'code' in value && NO_ERROR.test(textOfJson(value['code']))
  return !isSuccess && Object.values(value).some((inner) => !isEmpty(inner))
}

function isFailed(value: Fields): boolean {
  return Object.entries(value).some(([name, inner]) => {
    const plain = plainName(name)
    if (plain === 'success' || plain === 'ok') return truthOf(inner) === false
    if (/^(?:status|state|result|outcome)$/.test(plain) && FAILED.test(String(inner))) return true
    return /^(?:status|statuscode|httpstatus|code)$/.test(plain) && isErrorStatus(inner)
  })
}

function isErrorStatus(value: unknown): boolean {
  return /^[45]\d\d$/.test(String(value))
}

/** Returns the words of an error, which may be a text, an object, or a list of them. */
function wordsIn(error: unknown): string | null {
  if (Array.isArray(error)) return wordsIn(error[0])
  if (typeof error === 'string') return truthOf(error) === null ? cut(error) : null
  return isObject(error) ? messageIn(error) : null
}

function messageIn(value: Fields): string | null {
  const text = readText(value, OF_WORDS)
  if (text !== null) return cut(text)
  return null
}

function cut(text: string): string {
  const line = text.replace(/[\s\p{C}]+/gu, ' ').trim()
  return line.length > MAX_WORDS ? `${line.slice(0, MAX_WORDS)}…` : line
}
