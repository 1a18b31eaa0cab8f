import { SessionDoor } from '../support/session-door.ts';
import { Refusal } from './troubles.ts';

/** Whose refusals tell their code, so that they can be judged. */
export class SoakDoor extends SessionDoor {
  override async get<Body>(method: string, path: string, body?: unknown): Promise<Body> {
    const answer = await this.ask<Body>(method, path, body);
    if (answer.status >= 300)
      throw new Refusal(`${method} ${path}`, answer.status, answer.body.code, answer.body.detail);
    return answer.body;
  }
}
