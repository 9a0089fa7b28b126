"""A speech recogniser in the manner of ESPnet: VGG2L and BLSTMP, location-aware attention."""

import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


def make_pad_mask(lengths, maxlen=None):
    """True where a sequence has ended: (batch, maxlen)."""
    if not isinstance(lengths, torch.Tensor):
        lengths = torch.tensor(lengths)
    if maxlen is None:
        maxlen = int(lengths.max())
    steps = torch.arange(maxlen, device=lengths.device)
    return steps.unsqueeze(0) >= lengths.unsqueeze(1)


class VGG2L(nn.Module):
    """Two blocks of two convolutions; each halves time and frequency, rounding up."""

    def __init__(self, in_channel=1, widths=(64, 128)):
        super().__init__()
        first, second = widths
        self.conv1_1 = nn.Conv2d(in_channel, first, 3, stride=1, padding=1)
        self.conv1_2 = nn.Conv2d(first, first, 3, stride=1, padding=1)
        self.conv2_1 = nn.Conv2d(first, second, 3, stride=1, padding=1)
        self.conv2_2 = nn.Conv2d(second, second, 3, stride=1, padding=1)
        self.in_channel = in_channel

    @staticmethod
    def output_size(idim, in_channel=1, out_channel=128):
        idim = math.ceil(idim / in_channel)
        for _ in range(2):
            idim = math.ceil(idim / 2)
        return idim * out_channel

    def forward(self, xs_pad, ilens):
        batch, time, features = xs_pad.size()
        xs_pad = xs_pad.view(batch, time, self.in_channel, features // self.in_channel)
        xs_pad = xs_pad.transpose(1, 2)
        xs_pad = F.relu(self.conv1_1(xs_pad))
        xs_pad = F.relu(self.conv1_2(xs_pad))
        xs_pad = F.max_pool2d(xs_pad, 2, stride=2, ceil_mode=True)
        xs_pad = F.relu(self.conv2_1(xs_pad))
        xs_pad = F.relu(self.conv2_2(xs_pad))
        xs_pad = F.max_pool2d(xs_pad, 2, stride=2, ceil_mode=True)
        ilens = [math.ceil(math.ceil(n / 2) / 2) for n in ilens]
        xs_pad = xs_pad.transpose(1, 2)
        batch, time, channels, features = xs_pad.shape
        return xs_pad.contiguous().view(batch, time, channels * features), ilens


class BLSTMP(nn.Module):
    """Bidirectional LSTMs, each with subsampling in time and a projection behind it."""

    def __init__(self, idim, elayers, cdim, hdim, subsample):
        super().__init__()
        assert len(subsample) == elayers, f"{len(subsample)} factors for {elayers} layers"
        for layer in range(elayers):
            inputs = idim if layer == 0 else hdim
            setattr(
                self, f"birnn{layer}", nn.LSTM(inputs, cdim, bidirectional=True, batch_first=True)
            )
            setattr(self, f"bt{layer}", nn.Linear(2 * cdim, hdim))
        self.elayers = elayers
        self.cdim = cdim
        self.subsample = subsample

    def forward(self, xs_pad, ilens):
        for layer in range(self.elayers):
            rnn = getattr(self, f"birnn{layer}")
            ys_pad, _ = rnn(xs_pad)
            factor = self.subsample[layer]
            if factor > 1:
                ys_pad = ys_pad[:, ::factor]
                ilens = [(n + factor - 1) // factor for n in ilens]
            projected = getattr(self, f"bt{layer}")(ys_pad)
            xs_pad = torch.tanh(projected)
        return xs_pad, ilens


class PackedLSTM(nn.Module):
    """One LSTM over packed sequences."""

    def __init__(self, idim, hdim):
        super().__init__()
        self.rnn = nn.LSTM(idim, hdim, batch_first=True)

    def forward(self, xs_pad, ilens):
        packed = pack_padded_sequence(xs_pad, ilens, batch_first=True, enforce_sorted=False)
        ys, _ = self.rnn(packed)
        ys_pad, olens = pad_packed_sequence(ys, batch_first=True, total_length=xs_pad.size(1))
        return ys_pad, olens.tolist()


class Encoder(nn.Module):
    def __init__(self, idim, elayers, units, projection, *, widths, subsample, last=False):
        super().__init__()
        encoders = [
            VGG2L(widths=widths),
            BLSTMP(
                VGG2L.output_size(idim, out_channel=widths[-1]),
                elayers,
                units,
                projection,
                subsample,
            ),
        ]
        if last:
            encoders.append(PackedLSTM(projection, projection))
        self.enc = nn.ModuleList(encoders)

    def forward(self, xs_pad, ilens):
        for module in self.enc:
            xs_pad, ilens = module(xs_pad, ilens)
        mask = make_pad_mask(ilens, xs_pad.size(1)).unsqueeze(-1)
        return xs_pad.masked_fill(mask, 0.0), ilens


class AttLoc(nn.Module):
    """Location-aware attention (Chorowski et al., 2015)."""

    def __init__(self, eprojs, dunits, att_dim, channels, filters):
        super().__init__()
        self.mlp_enc = nn.Linear(eprojs, att_dim)
        self.mlp_dec = nn.Linear(dunits, att_dim, bias=False)
        self.mlp_att = nn.Linear(channels, att_dim, bias=False)
        self.loc_conv = nn.Conv2d(
            1, channels, (1, 2 * filters + 1), padding=(0, filters), bias=False
        )
        self.gvec = nn.Linear(att_dim, 1)

    def forward(self, enc_h, pre_enc, mask, dec_z, att_prev, scaling=2.0):
        batch, frames, _ = enc_h.shape
        if att_prev is None:
            att_prev = (~mask).float()
            att_prev = att_prev / att_prev.sum(dim=1, keepdim=True)
        att_conv = self.loc_conv(att_prev.view(batch, 1, 1, frames))
        att_conv = att_conv.squeeze(2).transpose(1, 2)
        att_conv = self.mlp_att(att_conv)
        dec_z_tiled = self.mlp_dec(dec_z).view(batch, 1, -1)
        e = self.gvec(torch.tanh(att_conv + pre_enc + dec_z_tiled)).squeeze(2)
        e = e.masked_fill(mask, -float("inf"))
        w = F.softmax(scaling * e, dim=1)
        context = torch.sum(enc_h * w.view(batch, frames, 1), dim=1)
        return context, w


class Decoder(nn.Module):
    def __init__(self, eprojs, odim, dlayers, dunits, att):
        super().__init__()
        self.embed = nn.Embedding(odim, dunits)
        self.decoder = nn.ModuleList([nn.LSTMCell(dunits + eprojs, dunits)])
        for _ in range(1, dlayers):
            self.decoder.append(nn.LSTMCell(dunits, dunits))
        self.output = nn.Linear(dunits, odim)
        self.att = att
        self.dunits = dunits
        self.sos = self.eos = odim - 1

    def zero_state(self, hs_pad):
        return hs_pad.new_zeros(hs_pad.size(0), self.dunits)

    def forward(self, hs_pad, hlens, ys_pad):
        mask = make_pad_mask(hlens, maxlen=hs_pad.size(1))
        sos = ys_pad.new_full((ys_pad.size(0), 1), self.sos)
        eos = ys_pad.new_full((ys_pad.size(0), 1), self.eos)
        ys_in = torch.cat([sos, ys_pad], dim=1)
        ys_out = torch.cat([ys_pad, eos], dim=1)

        z_list = [self.zero_state(hs_pad) for _ in self.decoder]
        c_list = [self.zero_state(hs_pad) for _ in self.decoder]
        pre_enc = self.att.mlp_enc(hs_pad)
        att_w = None
        z_all = []
        eys = self.embed(ys_in)
        for i in range(ys_in.size(1)):
            att_c, att_w = self.att(hs_pad, pre_enc, mask, z_list[0], att_w)
            ey = torch.cat((eys[:, i, :], att_c), dim=1)
            z_list[0], c_list[0] = self.decoder[0](ey, (z_list[0], c_list[0]))
            for n in range(1, len(self.decoder)):
                z_list[n], c_list[n] = self.decoder[n](z_list[n - 1], (z_list[n], c_list[n]))
            z_all.append(z_list[-1])
        z_all = torch.stack(z_all, dim=1).view(-1, self.dunits)
        y_all = self.output(z_all)
        return F.cross_entropy(y_all, ys_out.view(-1), reduction="sum") / ys_out.size(0)


class E2E(nn.Module):
    """The encoder, the attention decoder, and CTC beside it."""

    def __init__(
        self, idim, odim, *, elayers=4, units=320, widths=(64, 128), subsample=None, last=False
    ):
        super().__init__()
        subsample = subsample or (1,) * elayers
        self.enc = Encoder(
            idim, elayers, units, units, widths=widths, subsample=subsample, last=last
        )
        att = AttLoc(units, units, units, channels=10, filters=5)
        self.dec = Decoder(units, odim, 2, units, att)
        self.ctc_lo = nn.Linear(units, odim)

    def forward(self, xs_pad, ilens, ys_pad, mtlalpha=0.3):
        hs_pad, hlens = self.enc(xs_pad, ilens)
        loss_att = self.dec(hs_pad, hlens, ys_pad)
        log_probs = F.log_softmax(self.ctc_lo(hs_pad), dim=2).transpose(0, 1)
        olens = torch.full((ys_pad.size(0),), ys_pad.size(1), dtype=torch.long)
        loss_ctc = F.ctc_loss(log_probs, ys_pad, torch.tensor(hlens), olens, zero_infinity=True)
        return mtlalpha * loss_ctc + (1 - mtlalpha) * loss_att

    def encode(self, x):
        """The encoder's output for one utterance: (frames, units)."""
        hs_pad, _ = self.enc(x.unsqueeze(0), [x.size(0)])
        return hs_pad.squeeze(0)

    def recognise(self, x, maxlen):
        """Greedy search over one utterance."""
        self.eval()
        with torch.no_grad():
            h = self.encode(x).unsqueeze(0)
            mask = make_pad_mask([h.size(1)])
            pre_enc = self.dec.att.mlp_enc(h)
            states = [(self.dec.zero_state(h), self.dec.zero_state(h)) for _ in self.dec.decoder]
            att_w, y, hypothesis = None, torch.tensor([self.dec.sos]), []
            while len(hypothesis) < maxlen:
                att_c, att_w = self.dec.att(h, pre_enc, mask, states[0][0], att_w)
                z = torch.cat((self.dec.embed(y), att_c), dim=1)
                for n, cell in enumerate(self.dec.decoder):
                    states[n] = cell(z, states[n])
                    z = states[n][0]
                y = self.dec.output(z).argmax(dim=1)
                hypothesis.append(y)
        return torch.cat(hypothesis)
