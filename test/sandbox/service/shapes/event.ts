import { randomUUID } from 'node:crypto'
import { seconds } from '../../feed/generate.ts'
import type { Tag } from '../data/images.ts'
import type { EventForm } from './forms.ts'

/** What a delivery carries beside its signature. */
export interface ShownEvent {
  contentType: string
  headers: Record<string, string>
  body: string
}

/** Content of an event: `tags` has one, or more where the envelope allows several. */
interface EventFacts {
  id: string
  type: string
  tags: readonly [Tag, ...Tag[]]
  /** Unix milliseconds. */
  time: number
}

/** An event in the envelope of a shape (wire facts, webhook deliveries). */
export function shownEvent(form: EventForm, facts: EventFacts): ShownEvent {
  const { id, type, tags, time } = facts
  const [tag] = tags
  const at = seconds(time)
  const json = (body: unknown, headers = {}): ShownEvent => {
    return { contentType: 'application/json', headers, body: JSON.stringify(body) }
  }
  if (form.envelope === 'header') return json(image(form, tag), { 'x-event-type': type })
  if (form.envelope === 'event_type')
    return json({ event_id: id, event_type: type, created: at, payload: image(form, tag) })
  if (form.envelope === 'untyped') return json({ ...image(form, tag), created_at: at })
  if (form.envelope === 'batch') {
    const each = tags.flatMap((one) => ['amd64', 'arm64'].map((arch) => image(form, one, arch)))
    return json({ events: each.map((data) => ({ id: randomUUID(), type, occurred_at: at, data })) })
  }
  const source = 'https://service.example.com/registry'
  const about = { subject: reference(tag), time: at, data: image(form, tag) }
  const body = JSON.stringify({ specversion: '1.0', id, source, type, ...about })
  return { contentType: 'application/cloudevents+json', headers: {}, body }
}

function image({ image: form }: EventForm, tag: Tag, arch = 'amd64'): object {
  if (form === 'reference') return { image: `${reference(tag)}@${tag.digest}`, arch }
  const { image: of, name, digest } = tag
  return { image_repo: of.repository, image_tag: name, image_digest: digest, arch }
}

function reference({ image: of, name }: Tag): string {
  return `cr.example.com/${of.repository}:${name}`
}
