// Keeps a server that has no option for it on loopback, and says which port it got (PORT=0 takes a free one):
//   PORT=0 node --import ./loopback.mjs server.js
import net from 'node:net';

const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (port, ...rest) {
  this.once('listening', () => console.error(`loopback: listening at 127.0.0.1:${this.address().port}`));
  const done = rest.findLast((argument) => typeof argument === 'function');
  return listen.call(this, Number(port), '127.0.0.1', done);
};
