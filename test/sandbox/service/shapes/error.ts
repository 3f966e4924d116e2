import { STATUS_CODES } from 'node:http'
import { type NegotiatedAnswer, jsonAnswer, refusal } from '../../http/negotiate.ts'
import type { ErrorForm } from './forms.ts'

/** An error of the remediation surface in the form of a shape (wire facts, error bodies). */
export function wordedError(form: ErrorForm, status: number, message: string): NegotiatedAnswer {
  const title = STATUS_CODES[status] ?? 'Error'
  if (form === 'message') return refusal(status, message)
  if (form === 'nested') {
    return jsonAnswer(status, {
      error: { code: title.toUpperCase().replaceAll(' ', '_'), message },
    })
  }
  if (form === 'problem') {
    const answer = jsonAnswer(status, { type: 'about:blank', title, status, detail: message })
    return { ...answer, headers: { 'Content-Type': 'application/problem+json' } }
  }
  if (form === 'text') return textAnswer(status, `${message}\n`, 'text/plain; charset=utf-8')
  if (form === 'empty') return { status, headers: {}, length: 0, body: () => [] }
  const page = `<html><head><title>${status} ${title}</title></head><body><h1>${title}</h1></body></html>`
  return textAnswer(status, page, 'text/html')
}

function textAnswer(status: number, text: string, type: string): NegotiatedAnswer {
  const body = Buffer.from(text)
  return { status, headers: { 'Content-Type': type }, length: body.length, body: () => [body] }
}
